//! What clients and service say to each other: frames of one size, answered in their order.

/// Asks the service to store a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) client: u32,
    pub(super) number: u64,
    pub(super) extra: Extra,
}

/// What else the shard does that serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    Nothing,
    /// It computes for a while, and is overloaded if many ask for that.
    Compute,
    /// It hands the connection to another shard, once it has answered.
    Move,
    /// It dies, when the number is stored and has not been confirmed,
    DieUnheard,
    /// or when it has been.
    DieConfirmed,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) number: u64,
    /// Which life of which shard it comes from: no two have the same.
    pub(super) life: u32,
    /// The number is stored for good; else the shard was overloaded, and has done nothing.
    pub(super) is_stored: bool,
}

pub(super) type Frame = [u8; 16];

const EXTRAS: [Extra; 5] = [
    Extra::Nothing,
    Extra::Compute,
    Extra::Move,
    Extra::DieUnheard,
    Extra::DieConfirmed,
];

impl Request {
    pub(super) fn encode(self) -> Frame {
        frame(self.number, self.client, self.extra as u32)
    }

    /// `None`: this is no request.
    pub(super) fn decode(bytes: Frame) -> Option<Request> {
        let (number, client, extra) = parts(bytes);
        Some(Request {
            client,
            number,
            extra: *EXTRAS.get(extra as usize)?,
        })
    }
}

impl Answer {
    pub(super) fn encode(self) -> Frame {
        frame(self.number, self.life, self.is_stored.into())
    }

    pub(super) fn decode(bytes: Frame) -> Answer {
        let (number, life, is_stored) = parts(bytes);
        Answer {
            number,
            life,
            is_stored: is_stored != 0,
        }
    }
}

fn frame(number: u64, first: u32, second: u32) -> Frame {
    let mut frame = [0; 16];
    frame[..8].copy_from_slice(&number.to_le_bytes());
    frame[8..12].copy_from_slice(&first.to_le_bytes());
    frame[12..].copy_from_slice(&second.to_le_bytes());
    frame
}

fn parts(frame: Frame) -> (u64, u32, u32) {
    let frame = u128::from_le_bytes(frame);
    (frame as u64, (frame >> 64) as u32, (frame >> 96) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_say_what_was_said() {
        for (index, extra) in EXTRAS.into_iter().enumerate() {
            assert_eq!(extra as usize, index);
            let request = Request {
                client: 7,
                number: u64::MAX - 3,
                extra,
            };
            assert_eq!(Request::decode(request.encode()), Some(request));
        }
        assert_eq!(Request::decode([9; 16]), None);
        for is_stored in [false, true] {
            let answer = Answer {
                number: 1 << 40,
                life: 3,
                is_stored,
            };
            assert_eq!(Answer::decode(answer.encode()), answer);
        }
    }
}
