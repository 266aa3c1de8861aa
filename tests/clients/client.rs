// SPDX-License-Identifier: MIT
//! client TURNS: a group of instructions and branches around a region, by the bare system calls.
//! Prints how much more twice the turns are.
use std::arch::asm;
use std::os::raw::{c_int, c_long, c_ulong, c_void};

extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn read(fd: c_int, to: *mut c_void, size: usize) -> isize;
}

/// The first version of the attr, of 64 bytes.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const FORMAT_GROUP: u64 = 1 << 3;
const ENABLE: c_ulong = 0x2400;
const DISABLE: c_ulong = 0x2401;
const RESET: c_ulong = 0x2403;

fn open(config: u64, group: c_int) -> c_int {
    let attr = Attr {
        size: std::mem::size_of::<Attr>() as u32,
        config,
        read_format: FORMAT_GROUP,
        flags: EXCLUDE_KERNEL | EXCLUDE_HV | if group < 0 { DISABLED } else { 0 },
        ..Attr::default()
    };
    let fd = unsafe { syscall(298, &attr as *const Attr, 0, -1, group, 0) };
    if fd < 0 {
        panic!("perf_event_open: {}", std::io::Error::last_os_error());
    }
    fd as c_int
}

fn region(turns: u64) {
    unsafe {
        asm!("2:", "dec {0}", "jnz 2b", inout(reg) turns => _);
    }
}

// Not to be part of main(), whose code around the two calls would differ.
#[inline(never)]
fn measure(group: c_int, turns: u64) -> [u64; 3] {
    let mut values = [0u64; 3];
    unsafe {
        ioctl(group, RESET, 1);
        ioctl(group, ENABLE, 1);
        region(turns);
        ioctl(group, DISABLE, 1);
        assert_eq!(read(group, values.as_mut_ptr() as *mut c_void, 24), 24);
    }
    values
}

fn main() {
    let turns: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let group = open(1, -1);
    open(4, group);
    measure(group, turns); // the first time functions are looked up
    let once = measure(group, turns);
    let twice = measure(group, 2 * turns);
    assert_eq!(once[0], 2);
    println!("{} {}", twice[1] - once[1], twice[2] - once[2]);
}
