//! The cheapest possible agent: reads its prompt and exits. It uses no runtime library, because
//! starting one costs more than anything measured here.
#![no_std]
#![no_main]

use core::arch::asm;
use core::mem::MaybeUninit;

#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let mut buffer = MaybeUninit::<[u8; 4096]>::uninit();
    while system_call(0, 0, buffer.as_mut_ptr() as usize, 4096) > 0 {}
    loop {
        system_call(60, 0, 0, 0);
    }
}

/// `read` is 0 and `exit` is 60.
#[cfg(target_arch = "x86_64")]
fn system_call(number: usize, first: usize, second: usize, third: usize) -> isize {
    let result;
    // SAFETY: read writes into a buffer of the given length, and exit does not return.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
