use glommio::sync::CancellationToken;
use proptest::prelude::*;

use crate::common::Kept;
use crate::common::prelude::*;

#[test]
fn a_select_loop_piles_up_no_wakers() {
    let token = CancellationToken::new();
    let kept = Arc::new(Kept);
    let waker = Waker::from(Arc::clone(&kept));
    let mut cx = Context::from_waker(&waker);
    let mut long_lived = Box::pin(token.cancelled());
    for _ in 0..10_000 {
        assert!(long_lived.as_mut().poll(&mut cx).is_pending());
        let mut short_lived = Box::pin(token.cancelled());
        assert!(short_lived.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&kept), 3, "ours, the task's, one entry's");
}

/// Deep enough to overflow the stack if it recursed.
const DEPTH: usize = 200_000;

fn chain(root: &CancellationToken) -> Vec<CancellationToken> {
    let next = |token: &CancellationToken| Some(token.child_token());
    let first = root.child_token();
    std::iter::successors(Some(first), next)
        .take(DEPTH)
        .collect()
}

#[test]
fn deep_trees_are_cancelled_without_recursion() {
    let root = CancellationToken::new();
    let chain = chain(&root);
    root.cancel();
    assert!(chain.iter().all(CancellationToken::is_cancelled));
}

#[test]
fn deep_trees_are_dropped_without_recursion() {
    for from_the_top in [true, false] {
        let root = CancellationToken::new();
        let mut chain = chain(&root);
        if !from_the_top {
            chain.reverse();
        }
        let last = chain.pop().unwrap();
        drop(chain);
        root.cancel();
        assert!(last.is_cancelled());
    }
}

/// A task that hands on a child of its token, and drops the token, over and over.
#[test]
fn generations_pile_up_nothing() {
    let root = CancellationToken::new();
    let mut token = root.child_token();
    for _ in 0..1_000_000 {
        token = token.child_token();
    }
    let mut waiter = Polled::waiting(token.cancelled());
    root.cancel();
    waiter.finish();
}

/// A token gives memory for many children back when the last one leaves, and not before.
#[test]
fn one_of_many_children_that_leaves_takes_no_other_along() {
    let root = CancellationToken::new();
    let mut children: Vec<_> = (0..100).map(|_| root.child_token()).collect();
    drop(children.pop());
    root.cancel();
    assert!(children.iter().all(CancellationToken::is_cancelled));
}

#[test]
fn wakers_may_use_the_tree_and_panic() {
    let root = CancellationToken::new();
    let children: Vec<_> = (0..3).map(|_| Rc::new(root.child_token())).collect();
    let hooked = |of: &CancellationToken, hook: Box<dyn Fn()>| {
        let of = of.clone();
        let mut waiter = Polled::hooked(async move { of.cancelled().await }, hook);
        assert!(waiter.poll().is_pending());
        waiter
    };
    let others = children.clone();
    let mut waiters = [
        hooked(
            &root,
            Box::new(move || {
                assert!(others.iter().all(|it| it.is_cancelled()), "all before any");
                others[0].cancel();
                drop(others[1].child_token());
            }),
        ),
        hooked(&children[0], Box::new(quiet_panic)),
        hooked(&children[1], Box::new(|| ())),
        hooked(&children[2], Box::new(|| ())),
    ];
    drop(children);
    root.cancel();
    waiters.iter_mut().for_each(Polled::finish);
}

/// Trees that grow, lose tokens and are cancelled at random, against parents that are looked up one
/// by one.
fn random(seed: u64, operations: u64) {
    struct Token {
        token: CancellationToken,
        parent: Option<usize>,
        waiter: Polled<'static, ()>,
    }
    let mut numbers = Numbers::new(seed);
    let mut tokens: BTreeMap<usize, Token> = BTreeMap::new();
    for id in 0..operations as usize {
        let pick = numbers.below(1 << 16) as usize % tokens.len().max(1);
        let picked = tokens.keys().copied().nth(pick);
        match (numbers.below(16), picked) {
            (0..=6, _) if tokens.len() < 12 => {
                let parent = picked.filter(|_| numbers.below(4) > 0);
                let (token, parent) = match parent {
                    None => (CancellationToken::new(), None),
                    Some(id) if tokens[&id].token.is_cancelled() => {
                        let born = tokens[&id].token.child_token();
                        assert!(born.is_cancelled());
                        continue;
                    }
                    Some(id) => (tokens[&id].token.child_token(), Some(id)),
                };
                let of = token.clone();
                let waiter = Polled::waiting(async move { of.cancelled().await });
                tokens.insert(
                    id,
                    Token {
                        token,
                        parent,
                        waiter,
                    },
                );
            }
            (7..=11, Some(id)) => {
                // The waiter's future has a handle, too.
                let gone = tokens.remove(&id).expect("it was picked");
                for token in tokens.values_mut() {
                    if token.parent == Some(id) && !token.token.is_cancelled() {
                        token.parent = gone.parent;
                    }
                }
            }
            (12, Some(id)) => {
                let mut expected = vec![id];
                let mut at = 0;
                while let Some(&parent) = expected.get(at) {
                    let below = tokens.iter().filter(|(_, it)| it.parent == Some(parent));
                    expected.extend(
                        below
                            .map(|(&id, _)| id)
                            .filter(|id| !expected.contains(id))
                            .collect::<Vec<_>>(),
                    );
                    at += 1;
                }
                tokens[&id].token.cancel();
                for id in expected {
                    let token = &tokens[&id];
                    assert!(token.token.is_cancelled() && token.waiter.is_woken());
                }
            }
            (13, Some(id)) => {
                let token = tokens.get_mut(&id).expect("it was picked");
                token.waiter.change_waker();
                if token.token.is_cancelled() {
                    // Polled after its end it would panic, as futures of async blocks do.
                    continue;
                }
                assert!(token.waiter.poll().is_pending());
            }
            _ => {}
        }
        for token in tokens.values() {
            let is_parent_cancelled = token
                .parent
                .and_then(|parent| tokens.get(&parent))
                .is_some_and(|parent| parent.token.is_cancelled());
            assert!(token.token.is_cancelled() || !is_parent_cancelled);
            assert_eq!(token.waiter.is_woken(), token.token.is_cancelled());
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_plain_tree(seed in any::<u64>()) {
        random(seed, 100);
    }
}

#[test]
fn nobody_is_forgotten_in_a_long_run() {
    random(1, operations());
}
