//! The service as a node of a simulation, which loses its power where a shard would die.

use glommio::net::BalancedTcpListener;
use glommio::simulation::{self, Fault};

use super::client::{CLIENTS, Left, judge, run_all};
use super::protocol::Deaths;
use super::shard::{self, Lives, SHARDS, Service};
use crate::workload::executor;
use crate::workload::executor::Nodes;
use crate::workload::prelude::*;

/// Adds the service, and the executor of its clients and its store.
pub(super) fn start(plan: &mut Starter<'_>, nodes: Nodes) -> Started {
    let lives = Lives::new();
    let cut = || simulation::inject(Duration::ZERO, power_cut(OFF));
    let deaths = Deaths::by_power_cuts(cut);
    let service = Service {
        listen: Arc::new(|| BalancedTcpListener::bind(("0.0.0.0", PORT))),
        lives: lives.clone(),
        begun: Arc::default(),
        deaths: deaths.clone(),
    };
    nodes.services.borrow_mut().push(executor::Service {
        name: NAME,
        shards: SHARDS,
        main: Box::new(move || Box::pin(shard::run(service.clone()))),
    });
    let (seed, clients) = (plan.seed, plan.scaled(CLIENTS, 2));
    let work = move |checker: Rc<Checker>| async move {
        checker.spawn_sweeper();
        let keeping = spawn_local(shard::keep(lives.clone()));
        let address = format!("{NAME}:{PORT}");
        let told = run_all(&checker, seed, clients, &address, &deaths).await;
        lives.end();
        // What shards still do for connections that nothing hears of ends with them.
        simulation::inject(Duration::ZERO, power_cut(FOR_GOOD));
        judge(&checker, &told, Ok(Left::new(0, keeping.await)));
    };
    plan.start("survival", work)
}

fn power_cut(off_for: Duration) -> Fault {
    Fault::PowerCut {
        node: NAME.to_owned(),
        off_for,
    }
}

const NAME: &str = "shards";
const PORT: u16 = 7000;

const OFF: Duration = Duration::from_millis(5);
const FOR_GOOD: Duration = Duration::from_secs(3600);
