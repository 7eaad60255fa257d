//! Devices that lose what was not synced: the file system of `fuse.rs`, or an ext4 on a loop device
//! whose image is a file of that.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use crate::common::prelude::*;
use crate::start;

const IMAGE_BYTES: u64 = 32 << 20;

pub struct Device {
    server: Child,
    control: UnixStream,
    answers: BufReader<UnixStream>,
    /// Where the file system of `fuse.rs` is.
    at: PathBuf,
    ext4: Option<Ext4>,
    folders: usize,
    /// Where it is mounted.
    folder: TempDir,
}

struct Ext4 {
    at: PathBuf,
    is_mounted: bool,
}

/// Runs a command of the system, and gives what it printed, or why it does not work.
fn output(command: &str, arguments: &[&str], stdin: Stdio) -> Result<String, String> {
    let output = Command::new(command)
        .args(arguments)
        .stdin(stdin)
        .output()
        .map_err(|error| format!("{command} cannot be run: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!(
            "{command} {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
                .trim()
                .replace('\n', "; ")
        ))
    }
}

fn run(command: &str, arguments: &[&str]) -> Result<String, String> {
    output(command, arguments, Stdio::null())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

impl Device {
    /// Gives the current thread, and the processes that it starts, mounts of their own; or says why
    /// it may not have any.
    pub fn enter_mounts() -> Result<(), String> {
        unshare(CloneFlags::CLONE_NEWNS)
            .map_err(|error| format!("a thread may not have its own mounts: {error}"))?;
        run("mount", &["--make-rprivate", "/"])?;
        Ok(())
    }

    /// One that is mounted for the current thread, or what the machine lacks for that.
    pub fn new(has_ext4: bool) -> Result<Device, String> {
        let folder = tempfile::tempdir().expect("the disk has room");
        let kernel = fs::File::options().read(true).write(true).open("/dev/fuse");
        let kernel = kernel.map_err(|error| format!("/dev/fuse cannot be opened: {error}"))?;
        let at = folder.path().join("fuse");
        fs::create_dir(&at).expect("it is new");
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other";
        let mount = ["-i", "-t", "fuse", "-o", options, "crash", text(&at)];
        let shared: OwnedFd = kernel
            .try_clone()
            .expect("the system has descriptors")
            .into();
        output("mount", &mount, shared.into())?;
        // Only the server has it from here on: with its end all calls fail.
        let kernel = OwnedFd::from(kernel);
        let (server, control) = start("serve", &[], kernel.into());
        let answers = control.try_clone().expect("the system has descriptors");
        let mut device = Device {
            server,
            control,
            answers: BufReader::new(answers),
            at,
            ext4: None,
            folders: 0,
            folder,
        };
        if has_ext4 {
            let at = device.folder.path().join("ext4");
            fs::create_dir(&at).expect("it is new");
            device.ext4 = Some(Ext4 {
                at,
                is_mounted: false,
            });
            device.format()?;
            device.mount()?;
        }
        Ok(device)
    }

    /// A folder to write in, which is there after the power failed. The file system of `fuse.rs` has
    /// but one.
    pub fn new_folder(&mut self) -> PathBuf {
        let Some(ext4) = &self.ext4 else {
            return self.at.clone();
        };
        self.folders += 1;
        let folder = ext4.at.join(self.folders.to_string());
        fs::create_dir(&folder).expect("it has room");
        let opened = fs::File::open(&ext4.at).expect("it is there");
        opened.sync_all().expect("its power is on");
        folder
    }

    fn image(&self) -> PathBuf {
        self.at.join("image")
    }

    fn format(&self) -> Result<(), String> {
        let image = fs::File::create(self.image()).expect("it takes files");
        image.set_len(IMAGE_BYTES).expect("it has room");
        run("mkfs.ext4", &["-q", "-F", text(&self.image())])?;
        image.sync_all().expect("its power is on");
        Ok(())
    }

    fn mount(&mut self) -> Result<(), String> {
        let image = self.image();
        let Some(ext4) = &mut self.ext4 else {
            return Ok(());
        };
        // The kernel gives the loop device back when it is unmounted, in whatever way.
        let arguments = ["-t", "ext4", "-o", "loop", text(&image), text(&ext4.at)];
        run("mount", &arguments)?;
        ext4.is_mounted = true;
        Ok(())
    }

    fn unmount(&mut self) {
        let Some(ext4) = &mut self.ext4 else { return };
        if !std::mem::take(&mut ext4.is_mounted) {
            return;
        }
        // It cannot bring to the device what it still has. It is busy as long as the kernel has not
        // taken down the ring of the process that was killed, which may be after its end.
        for _ in 0..500 {
            match run("umount", &[text(&ext4.at)]) {
                Ok(_) => return,
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
        panic!("{} stays busy", ext4.at.display());
    }

    fn command(&mut self, command: &str) -> String {
        writeln!(self.control, "{command}").expect("it runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert!(answer.ends_with('\n'), "the server has ended");
        answer.trim().to_owned()
    }

    /// From now on nothing reaches it.
    pub fn cut_power(&mut self) {
        self.command("off 0");
    }

    /// From now on one call in so many fails. With a sync that fails may get lost what was not
    /// synced before, and is not there after the next sync either.
    ///
    /// Below an ext4 all calls fail after the first: it survives no device that forgets, and the
    /// loop device takes a write whose second half failed for a whole one.
    pub fn fail(&mut self, one_in: u64) {
        let manner = match self.ext4 {
            None => "failing",
            Some(_) => "dying",
        };
        self.command(&format!("{manner} {one_in}"));
    }

    /// The power is there again, after it was cut: what was not synced was kept or lost at
    /// random. How many changes were kept, and how many lost.
    pub fn restart(&mut self, seed: u64) -> (u64, u64) {
        self.cut_power();
        self.unmount();
        let answer = self.command(&format!("on {seed}"));
        let (kept, lost) = answer.split_once(' ').expect("two numbers");
        self.mount().expect("it could be mounted before");
        let number = |it: &str| it.parse().expect("a number");
        (number(kept), number(lost))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if thread::panicking() {
            let ext4 = self.ext4.iter().filter(|ext4| ext4.is_mounted);
            ext4.for_each(|ext4| drop(run("umount", &["--lazy", text(&ext4.at)])));
        } else {
            self.unmount();
        }
        let _ = run("umount", &["--lazy", text(&self.at)]);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
