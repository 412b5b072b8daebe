use super::*;
use std::io::Read;
use std::process::{Child, Command, Stdio};

fn shell(script: &str) -> (Child, i32) {
    let child = Command::new("sh")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh");
    let pid = i32::try_from(child.id()).expect("pid");
    (child, pid)
}

fn wait_for_byte(child: &mut Child) {
    child
        .stdout
        .as_mut()
        .expect("piped")
        .read_exact(&mut [0])
        .expect("a byte");
}

#[test]
fn we_can_sample_ourselves_and_work_shows() {
    let mut sampler = Sampler::new(Source::ourselves(), Instant::now());
    let before = sampler.sample().expect("alive");
    let mut sum = 0u64;
    // Until the work shows, whatever the machine: this test cannot end without CPU time being counted.
    let after = loop {
        sum = (0..10_000u64).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        let sample = sampler.sample().expect("alive");
        if sample.cpu_us > before.cpu_us + 5_000 {
            break sample;
        }
    };
    assert!(after.at_ns > before.at_ns);
    assert!(
        after.rss_bytes > 0
            && after.rss_peak_bytes >= after.rss_bytes
            && after.rss_anon_bytes <= after.rss_bytes
    );
    assert!(after.threads >= 1 && after.processes == 1);
    let detail = after.detail.expect("detailed");
    assert!(detail.fds.expect("own files") >= 3);
    assert!(detail.voluntary_switches >= before.detail.expect("detailed").voluntary_switches);
    assert_eq!(sampler.source_name(), "process tree");
}

#[test]
fn several_processes_are_sampled_as_one() {
    let (mut other, pid) = shell("echo; exec sleep 60");
    wait_for_byte(&mut other);
    let source = Source::ourselves_and(&[pid]);
    let both = Sampler::new(source, Instant::now()).sample();
    let both = both.expect("alive");
    let alone = Sampler::new(Source::ourselves(), Instant::now()).sample();
    let alone = alone.expect("alive");
    assert_eq!((both.processes, alone.processes), (2, 1));
    assert!(both.rss_bytes > alone.rss_bytes / 2);
    let fds = |sample: &Sample| sample.detail.expect("detailed").fds.expect("own files");
    assert!(fds(&both) >= 3 + 3);
    other.kill().expect("kill");
    other.wait().expect("reaped");
}

#[test]
fn memory_that_processes_share_counts_once_in_pss() {
    let (mut child, pid) = shell("(exec sleep 60) & echo; exec sleep 60");
    wait_for_byte(&mut child);
    let deadline = Instant::now() + std::time::Duration::from_secs(20);
    let source = Source::Tree(pid);
    while source.processes().len() < 2 {
        assert!(Instant::now() < deadline, "no second process");
        std::thread::yield_now();
    }
    // At least the C library is in both, once both programs are loaded.
    loop {
        let both = source.memory().expect("alive");
        let pss_bytes = both.pss_bytes.expect("our own processes");
        if pss_bytes > 0 && pss_bytes < both.rss_bytes {
            break;
        }
        assert!(Instant::now() < deadline, "{both:?}");
        std::thread::yield_now();
    }
    for pid in descendants(pid) {
        nix::sys::signal::kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
            .expect("kill");
    }
    child.kill().expect("kill");
    child.wait().expect("reaped");
    assert_eq!(Source::Process(pid).memory(), None);
}

#[test]
fn the_busiest_thread_is_the_one_that_grew_most() {
    let mut busiest = BusiestThread::default();
    assert_eq!(busiest.update(0, [((1, 1), 900), ((1, 2), 0)].into()), None);
    let share = busiest.update(1000, [((1, 1), 950), ((1, 2), 700), ((1, 3), 999)].into());
    assert_eq!(share, Some(0.7), "the third is new");
    assert_eq!(
        busiest.update(2000, [((1, 2), 800), ((1, 3), 99)].into()),
        Some(0.1),
        "the first is gone, the third another thread of that name"
    );
}

#[test]
fn a_tree_includes_children_and_keeps_what_they_spent() {
    let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let (mut child, pid) = shell(&format!(
        "({busy}; echo; exec sleep 60) & wait; echo; exec sleep 60"
    ));
    let mut sampler = Sampler::new(Source::Tree(pid), Instant::now());
    wait_for_byte(&mut child);
    let with_child = sampler.sample().expect("alive");
    assert_eq!(with_child.processes, 2);
    assert!(with_child.cpu_us > 0);
    for pid in descendants(pid) {
        nix::sys::signal::kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
            .expect("kill");
    }
    wait_for_byte(&mut child);
    let without = sampler.sample().expect("alive");
    assert_eq!(without.processes, 1);
    assert!(
        without.cpu_us >= with_child.cpu_us,
        "{without:?} {with_child:?}"
    );
    assert!(without.rss_peak_bytes >= with_child.rss_bytes);
    child.kill().expect("kill");
    // Dead, but not waited for; the signal takes a moment.
    let deadline = Instant::now() + std::time::Duration::from_secs(20);
    while sampler.sample().is_some() {
        assert!(Instant::now() < deadline, "a dead process is still sampled");
        std::thread::yield_now();
    }
    child.wait().expect("reaped");
    assert!(sampler.sample_light().is_none());
}

#[test]
fn the_cpus_of_a_process_are_those_of_all_its_threads() {
    let ours = CpuList::allowed_to_us().expect("allowed");
    let last = CpuList::new(ours.as_slice().last().copied().into_iter().collect());
    let last = last.expect("one");
    let (bound, ready) = std::sync::mpsc::channel();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn({
        let last = last.clone();
        move || {
            last.bind_this_thread().expect("bound");
            bound.send(()).expect("waits");
            let _ = wait.recv();
        }
    });
    ready.recv().expect("bound");
    let seen = Source::ourselves().cpus().expect("we run");
    assert!(seen.overlaps(&last) && ours.as_slice().iter().all(|cpu| seen.contains(*cpu)));
    drop(done);
    thread.join().expect("ended");
    assert_eq!(Source::Process(i32::MAX).cpus(), None);
}
