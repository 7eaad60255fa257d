//! Folders that look like `/sys/devices/system` on some machine.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// A machine of which there is only what the kernel would say about it.
pub(crate) struct MadeUp(TempDir);

impl MadeUp {
    pub(crate) fn with_online_cpus(list: &str) -> Self {
        let machine = MadeUp(tempfile::tempdir().unwrap());
        machine.write("cpu/online", list);
        machine
    }

    pub(crate) fn node(self, node: usize, cpu_list: &str) -> Self {
        self.write(&format!("node/node{node}/cpulist"), cpu_list);
        self
    }

    pub(crate) fn online_nodes(self, list: &str) -> Self {
        self.write("node/online", list);
        self
    }

    pub(crate) fn cpu(self, cpu: usize, package: i64, core_id: i64, threads: &str) -> Self {
        self.topology(cpu, "physical_package_id", &package.to_string());
        self.topology(cpu, "core_id", &core_id.to_string());
        self.topology(cpu, "core_cpus_list", threads);
        self
    }

    /// One CPU after the other, from what `describe` says about each: its package, the kernel's
    /// number of its core, and the threads of that core.
    pub(crate) fn cpus(
        self,
        cpus: impl IntoIterator<Item = usize>,
        describe: impl Fn(usize) -> (i64, i64, String),
    ) -> Self {
        cpus.into_iter().fold(self, |machine, cpu| {
            let (package, core_id, threads) = describe(cpu);
            machine.cpu(cpu, package, core_id, &threads)
        })
    }

    pub(crate) fn topology(&self, cpu: usize, file: &str, text: &str) {
        self.write(&format!("cpu/cpu{cpu}/topology/{file}"), text);
    }

    pub(crate) fn without(self, path: &str) -> Self {
        fs::remove_file(self.path().join(path)).unwrap();
        self
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// What stands for `/sys/devices/system`.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}
