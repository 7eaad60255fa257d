//! Options that several kinds of socket have.
//!
//! They are methods of each of these types, so that no trait has to be imported for them, and
//! written once, as macros to be called inside an `impl`. The type has a method `socket()` that
//! gives the [`Socket`].

#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use crate::sys::socket::Socket;
use socket2::Domain;

/// Options that are as `socket2` has them: what is read, and what sets it, with what the error of that may be.
macro_rules! plain_options {
    ($(
        $(#[$about:meta])*
        $get:ident: $T:ty, $set:ident: $Arg:ty $(, $error:literal)?;
    )*) => {$(
        $(#[$about])*
        pub fn $get(&self) -> $crate::net::Result<$T> {
            Ok(self.socket().$get()?)
        }

        #[doc = concat!("Sets what [`", stringify!($get), "`](Self::", stringify!($get), ") returns.", $($error)?)]
        pub fn $set(&self, value: $Arg) -> $crate::net::Result<()> {
            Ok(self.socket().$set(value)?)
        }
    )*};
}
pub(super) use plain_options;

/// Options of a socket of any family.
macro_rules! socket_options {
    () => {
        /// The size of the kernel's receive buffer in bytes (`SO_RCVBUF`): how much data it keeps
        /// that was not received yet. This includes the kernel's bookkeeping.
        pub fn recv_buffer_size(&self) -> $crate::net::Result<usize> {
            Ok(self.socket().recv_buffer_size()?)
        }

        /// Asks for a receive buffer in the kernel of `size` bytes. The kernel doubles that, for
        /// its bookkeeping, and cuts it to what `net.core.rmem_max` allows;
        /// [`recv_buffer_size`](Self::recv_buffer_size) returns the result. From then on the kernel
        /// does not adjust the buffer to the traffic any more, as it does for TCP by default.
        pub fn set_recv_buffer_size(&self, size: usize) -> $crate::net::Result<()> {
            Ok(self
                .socket()
                .set_recv_buffer_size(size.min(i32::MAX as usize))?)
        }

        /// The size of the kernel's send buffer in bytes (`SO_SNDBUF`): how much may be written
        /// before writes have to wait. This includes the kernel's bookkeeping.
        pub fn send_buffer_size(&self) -> $crate::net::Result<usize> {
            Ok(self.socket().send_buffer_size()?)
        }

        /// Asks for a send buffer in the kernel of `size` bytes. As
        /// [`set_recv_buffer_size`](Self::set_recv_buffer_size) otherwise; the limit is
        /// `net.core.wmem_max`.
        pub fn set_send_buffer_size(&self, size: usize) -> $crate::net::Result<()> {
            Ok(self
                .socket()
                .set_send_buffer_size(size.min(i32::MAX as usize))?)
        }

        /// Takes the error that the socket holds, if any (`SO_ERROR`), so that no operation reports
        /// it any more.
        pub fn take_error(&self) -> $crate::net::Result<Option<std::io::Error>> {
            Ok(self.socket().take_error()?)
        }
    };
}
pub(super) use socket_options;

/// Options of an internet socket, connected or not, of whatever protocol.
macro_rules! internet_options {
    () => {
        /// The time to live (`IP_TTL`) of IPv4 packets sent from here; packets of IPv6 are not affected.
        pub fn ttl(&self) -> $crate::net::Result<u32> {
            Ok(self.socket().ttl_v4()?)
        }

        /// Sets what [`ttl`](Self::ttl) returns.
        pub fn set_ttl(&self, ttl: u32) -> $crate::net::Result<()> {
            Ok(self.socket().set_ttl_v4(ttl)?)
        }

        /// The type of service (`IP_TOS`), or the traffic class (`IPV6_TCLASS`), of packets sent
        /// from here. 0 by default.
        pub fn tos(&self) -> $crate::net::Result<u8> {
            Ok($crate::net::options::tos(self.socket())?)
        }

        /// Sets what [`tos`](Self::tos) returns. On TCP the lowest two bits, which are for
        /// congestion notification, stay as they are.
        pub fn set_tos(&self, tos: u8) -> $crate::net::Result<()> {
            Ok($crate::net::options::set_tos(self.socket(), tos)?)
        }

        /// For how long a receive that finds nothing polls the queue of the network device
        /// (`SO_BUSY_POLL`). Zero is not at all; the default is what `net.core.busy_read` says.
        pub fn busy_poll(&self) -> $crate::net::Result<std::time::Duration> {
            let micros = self.socket().busy_poll()?;
            Ok(std::time::Duration::from_micros(micros.into()))
        }

        /// Sets what [`busy_poll`](Self::busy_poll) returns, rounded up to whole microseconds.
        ///
        /// Receives here never wait in the kernel, so each that finds nothing polls the device
        /// once, whatever the time is. That saves the way through its interrupt, for processor
        /// time, on devices whose drivers can do it.
        ///
        /// # Errors
        ///
        /// `EPERM` for more than it is now, without `CAP_NET_ADMIN`; kind `InvalidInput` for more
        /// than half an hour, which the option cannot say.
        pub fn set_busy_poll(&self, time: std::time::Duration) -> $crate::net::Result<()> {
            let micros = $crate::net::options::in_units(time, std::time::Duration::from_micros(1))?;
            Ok(self.socket().set_busy_poll(micros)?)
        }
    };
}
pub(super) use internet_options;

/// Options of an internet socket that may receive from peers of both versions.
macro_rules! bound_options {
    () => {
        /// Whether the IPv6 socket refuses IPv4 (`IPV6_V6ONLY`). That is fixed when it is bound;
        /// the default is what `net.ipv6.bindv6only` says.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` gives, for instance to a socket of IPv4.
        pub fn only_v6(&self) -> $crate::net::Result<bool> {
            Ok(self.socket().only_v6()?)
        }
    };
}
pub(super) use bound_options;

pub(super) fn tos(socket: &Socket) -> io::Result<u8> {
    let tos = if is_ipv6(socket)? {
        socket.tclass_v6()?
    } else {
        socket.tos_v4()?
    };
    Ok(u8::try_from(tos).expect("it is an octet of the packet's header"))
}

pub(super) fn set_tos(socket: &Socket, tos: u8) -> io::Result<()> {
    if is_ipv6(socket)? {
        socket.set_tclass_v6(tos.into())?;
    }
    // On a socket of IPv6 this is for peers of IPv4.
    socket.set_tos_v4(tos.into())
}

fn is_ipv6(socket: &Socket) -> io::Result<bool> {
    Ok(socket.domain()? == Domain::IPV6)
}

/// How many of `unit` make up `time`, rounded up, for an option that is an `int`.
pub(super) fn in_units(time: Duration, unit: Duration) -> io::Result<u32> {
    let units = time.as_nanos().div_ceil(unit.as_nanos());
    let units = i32::try_from(units).map_err(|_| {
        let most = unit.saturating_mul(i32::MAX as u32);
        let text = format!("{time:?} is more than the option can say, which is {most:?}");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })?;
    Ok(units.cast_unsigned())
}

/// `time` in the unit of the kernel, rounded up: less than a second would become none, which often
/// means something else altogether.
pub(super) fn in_whole_seconds(time: Duration) -> Duration {
    let seconds = time
        .as_secs()
        .saturating_add((time.subsec_nanos() > 0).into());
    Duration::from_secs(seconds.min(MAX_SECONDS))
}

/// The kernel takes an `int`.
const MAX_SECONDS: u64 = i32::MAX as u64;
