//! What was confirmed is there: a process that writes through `DmaStreamWriter`, `DmaFile` and
//! `BufferedFile` is killed at random, on a disk and on devices that lose what was not synced, or
//! fail. It says what is confirmed over a socket as soon as it is; a second process, the test,
//! compares that with the files. See `docs/reference/file-guarantees.md` for what is promised.
//!
//! Each kind of crash happens a few times, or as often as `GLOMMIO_CRASHES` says:
//! `GLOMMIO_CRASHES=500 cargo test -p glommio --test crash -- --nocapture`, which also prints how
//! much was confirmed.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::resume_unwind;
use std::process::{Child, Command};

#[path = "../common/mod.rs"]
mod common;

mod device;
mod fuse;
mod truth;
mod work;

use common::polled::number;
use device::Device;
use nix::sched::{CloneFlags, unshare};
use truth::{End, Sum, Truth};

use crate::common::prelude::*;

const ROLE: &str = "GLOMMIO_CRASH_ROLE";
const SOCKET: &str = "GLOMMIO_CRASH_SOCKET";
const FOLDER: &str = "GLOMMIO_CRASH_FOLDER";
const SEED: &str = "GLOMMIO_CRASH_SEED";
const LIES: &str = "GLOMMIO_CRASH_LIES";

/// Starts this program in another role, and connects to it.
fn start(role: &str, environment: &[(&str, &str)], stdin: Stdio) -> (Child, UnixStream) {
    let folder = tempfile::tempdir().expect("the disk has room");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("the path is short");
    let child = Command::new(std::env::current_exe().expect("the program knows where it is"))
        .args(["--exact", "a_process_of_another_test", "--nocapture"])
        .env(ROLE, role)
        .env(SOCKET, &path)
        .envs(environment.iter().copied())
        .stdin(stdin)
        .stdout(Stdio::null())
        .spawn()
        .expect("the test program can be started again");
    let (socket, _) = listener.accept().expect("it connects");
    (child, socket)
}

/// What the processes of the other tests are.
#[test]
fn a_process_of_another_test() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let socket = std::env::var(SOCKET).expect("it is set along with the role");
    let socket = UnixStream::connect(socket).expect("the test listens");
    match &role[..] {
        "serve" => {
            // What is mounted on it later is not for this process to unmount at its end: it would
            // wait for itself.
            unshare(CloneFlags::CLONE_NEWNS).expect("the test was allowed to, too");
            let kernel = io::stdin().as_fd().try_clone_to_owned();
            let kernel: OwnedFd = kernel.expect("the system has descriptors");
            fuse::serve(File::from(kernel), socket).expect("the kernel asks what it knows");
        }
        "work" => {
            let folder = PathBuf::from(std::env::var_os(FOLDER).expect("it is set"));
            work::process(&folder, number(SEED, 1), number(LIES, 0) == 1, socket);
        }
        _ => panic!("{role} is no role"),
    }
}

/// Says that the current test is left out. Fails it if `GLOMMIO_TEST_MOUNTS` says `required`.
#[track_caller]
fn left_out(reason: impl Display) {
    const NEEDED: &str = "needed are the capability SYS_ADMIN (root; --privileged of a container), /dev/fuse, \
                          loop devices, `mount` and `mkfs.ext4`";
    let is_required = std::env::var_os("GLOMMIO_TEST_MOUNTS").is_some_and(|it| it == "required");
    assert!(
        !is_required,
        "GLOMMIO_TEST_MOUNTS=required, but {reason}; {NEEDED}"
    );
    skipped(format_args!("{reason}; {NEEDED}"));
}

/// A process that writes in `folder` until it is killed, and what it says.
struct Writer {
    process: Child,
    says: BufReader<UnixStream>,
    truth: Truth,
}

impl Writer {
    fn new(folder: &Path, seed: u64, lies: bool) -> Self {
        let seed = seed.to_string();
        let environment = [
            (FOLDER, folder.to_str().expect("a path of letters")),
            (SEED, &seed),
            (LIES, if lies { "1" } else { "0" }),
        ];
        let (process, socket) = start("work", &environment, Stdio::null());
        Writer {
            process,
            says: BufReader::new(socket),
            truth: Truth::default(),
        }
    }

    /// Listens to a sentence. Whether there was one: not if it has done all.
    fn hear(&mut self) -> bool {
        let mut line = String::new();
        let count = self.says.read_line(&mut line);
        // The last sentence may be cut off.
        match line.strip_suffix('\n') {
            Some("done all 0") => false,
            Some(line) => {
                self.truth.hear(line);
                true
            }
            None => {
                count.expect("a socket can be read");
                false
            }
        }
    }

    /// All that it said.
    fn kill(mut self) -> Truth {
        self.process.kill().expect("it is a child of this process");
        self.process.wait().expect("it is a child of this process");
        while self.hear() {}
        self.truth
    }
}

/// Prints the seed of what failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("GLOMMIO_SEED={} GLOMMIO_CRASHES=1", self.0);
        }
    }
}

/// The seeds of so many crashes, or of as many as wanted.
fn seeds(crashes: u64) -> Range<u64> {
    let first = number("GLOMMIO_SEED", 1);
    first..first + number("GLOMMIO_CRASHES", crashes)
}

/// Lets a process write in `folder`, for a while that is random, and kills it after `crash`.
fn crashed(folder: &Path, seed: u64, lies: bool, crash: impl FnOnce(&mut Writer)) -> Truth {
    let mut numbers = Numbers::new(seed);
    let mut writer = Writer::new(folder, seed, lies);
    let most = 4 << numbers.below(9);
    for _ in 0..numbers.below(most) {
        writer.hear();
    }
    thread::sleep(Duration::from_micros(numbers.below(3000)));
    crash(&mut writer);
    writer.kill()
}

#[test]
fn what_was_confirmed_is_there_after_the_process_was_killed() {
    let mut sum = Sum::default();
    let seeds = seeds(15);
    for seed in seeds.clone() {
        let (_seed, _watchdog) = (Seed(seed), watchdog());
        let folder = match seed % 4 {
            0 => tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()),
            _ => tempfile::tempdir(),
        };
        let folder = folder.expect("the disk has room");
        let truth = crashed(folder.path(), seed, false, |_| ());
        let broken = truth.broken(folder.path(), End::Killed);
        assert!(broken.is_empty(), "{broken:#?}");
        assert!(truth.failed.is_empty(), "{:?}", truth.failed);
        sum += truth.sum();
    }
    println!("the process was killed {} times: {sum}", seeds.count());
    assert!(sum.durable > 0 && sum.written > sum.durable, "{sum}");
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    PowerCut,
    /// Calls fail, and then the power is cut, too.
    Errors,
}

/// What processes are run on.
#[derive(Clone, Copy)]
struct Setting {
    /// On the file system of `fuse.rs` itself otherwise.
    has_ext4: bool,
    fault: Fault,
    /// The processes do not sync, and say that they did.
    lies: bool,
}

/// Runs a process for each seed on a device that fails. What of that which it confirmed is not the
/// case afterwards, or nothing if the machine does not let it run.
fn on_a_device(name: &str, seeds: Range<u64>, setting: Setting) -> Option<Vec<String>> {
    // The mounts are those of a thread, which has the name of the test.
    let test = thread::current().name().map(str::to_owned);
    let thread = thread::Builder::new().name(test.unwrap_or_default());
    let run = || match crashes_on_devices(name, seeds, setting) {
        Ok(broken) => Some(broken),
        Err(reason) => {
            left_out(format_args!("{name}: {reason}"));
            None
        }
    };
    thread::scope(|scope| {
        let running = thread.spawn_scoped(scope, run);
        running.expect("the system has a thread").join()
    })
    .unwrap_or_else(|panic| resume_unwind(panic))
}

fn crashes_on_devices(
    name: &str,
    seeds: Range<u64>,
    setting: Setting,
) -> Result<Vec<String>, String> {
    /// Crashes of one device with an ext4, which has to keep what was confirmed before as well.
    const CRASHES: usize = 4;
    Device::enter_mounts()?;
    let mut sum = Sum::default();
    let (mut kept, mut lost) = (0, 0);
    let mut broken = Vec::new();
    let mut lives: Vec<(PathBuf, Truth)> = Vec::new();
    let mut device: Option<Device> = None;
    for seed in seeds.clone() {
        let (_seed, _watchdog) = (Seed(seed), watchdog());
        if lives.len() == CRASHES || !setting.has_ext4 {
            lives.clear();
            device = None;
        }
        let device = match &mut device {
            Some(device) => device,
            None => device.insert(Device::new(setting.has_ext4)?),
        };
        let folder = device.new_folder();
        let mut before = None;
        let truth = crashed(&folder, seed, setting.lies, |writer| match setting.fault {
            Fault::PowerCut => device.cut_power(),
            Fault::Errors => {
                // An ext4 may let a sync succeed in vain while that of another aborts its journal,
                // also of programs of plain system calls (seen on 6.18).
                before = setting.has_ext4.then(|| writer.truth.clone());
                device.fail(8);
                while writer.truth.failed.len() < 10 + seed as usize % 30 && writer.hear() {}
            }
        });
        sum += truth.sum();
        lives.push((folder, before.unwrap_or(truth)));
        let (stayed, went) = device.restart(seed);
        kept += stayed;
        lost += went;
        for (folder, truth) in &lives {
            broken.extend(truth.broken(folder, End::PowerFailed));
        }
        if !setting.lies {
            assert!(broken.is_empty(), "{broken:#?}");
        }
    }
    println!(
        "{name}, {} times: {sum}; of the changes that were not synced, the device kept {kept} and lost {lost}",
        seeds.count()
    );
    assert!(sum.durable > 0, "{sum}");
    assert!(
        setting.fault == Fault::PowerCut || sum.failures > 0,
        "{sum}"
    );
    Ok(broken)
}

#[test]
fn what_was_synced_is_there_after_a_device_lost_what_was_not() {
    let setting = Setting {
        has_ext4: false,
        fault: Fault::PowerCut,
        lies: false,
    };
    on_a_device("a device lost its power", seeds(10), setting);
}

#[test]
fn what_was_synced_is_there_after_an_ext4_lost_its_power() {
    let setting = Setting {
        has_ext4: true,
        fault: Fault::PowerCut,
        lies: false,
    };
    on_a_device("an ext4 lost its power", seeds(6), setting);
}

#[test]
fn what_was_synced_is_there_on_a_device_that_fails_and_forgets() {
    let setting = Setting {
        has_ext4: false,
        fault: Fault::Errors,
        lies: false,
    };
    on_a_device("a device failed at times", seeds(10), setting);
}

#[test]
fn what_was_synced_is_there_on_an_ext4_whose_device_died() {
    let setting = Setting {
        has_ext4: true,
        fault: Fault::Errors,
        lies: false,
    };
    on_a_device("the device of an ext4 died", seeds(6), setting);
}

/// The tests above see it: of a process that says that data is durable when it was only written.
#[test]
fn a_process_that_syncs_nothing_is_found_out() {
    let setting = Setting {
        has_ext4: false,
        fault: Fault::PowerCut,
        lies: true,
    };
    if let Some(broken) = on_a_device("a process lied", 1..7, setting) {
        assert!(!broken.is_empty(), "nothing was missed");
    }
}
