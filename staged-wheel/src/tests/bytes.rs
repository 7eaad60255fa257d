//! Histories from bytes, for the fuzz target: any bytes make one, and one byte more or less leaves
//! the rest of it alone as far as possible.

use super::history::{Budget, Op, Step, When, Which};
use super::model::Pair;
use crate::classic::ClassicQueue;
use crate::wheel::StagedWheel;

/// Takes all queues through the history that `bytes` tell, step by step beside the sorted map.
///
/// # Panics
///
/// When a queue does what the map does not, or breaks an invariant of its own.
pub fn follow_bytes(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let mut classic = Pair::<ClassicQueue<usize>>::new();
    let mut wheel = Pair::<StagedWheel<usize>>::wheel();
    let mut staged = Pair::<StagedWheel<usize>>::new();
    // Half of the histories give a poll next to no moves.
    let moves = usize::from(bytes.byte());
    if moves >= 128 {
        wheel.bound_moves(moves - 127);
        staged.bound_moves(moves - 127);
    }
    for _ in 0..OPS_MAX {
        let Some(op) = bytes.op() else { break };
        classic.apply(&op);
        wheel.apply(&op);
        staged.apply(&op);
    }
    classic.check();
    wheel.check();
    staged.check();
}

/// What is left to read. Past the end there are zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// The next operation, or `None` at the end.
    fn op(&mut self) -> Option<Op> {
        if self.0.is_empty() {
            return None;
        }
        Some(match self.byte() % 32 {
            0..=5 => Op::Arm(self.when()),
            6 => Op::ArmMany(self.short() % 400 + 1, self.when(), u32::from(self.short())),
            7..=9 => Op::Cancel(self.which()),
            10..=12 => Op::Rearm(self.which(), self.when()),
            13 => Op::LookUp(self.which()),
            14 => Op::CancelMany(self.byte()),
            15..=18 => Op::Poll(self.step(), self.budget()),
            19..=20 => Op::Ask,
            21..=22 => Op::Sleep(self.byte() % 20 + 1),
            23 => Op::Age(self.byte() % 4),
            24 => Op::SkipArms(self.byte() % 8),
            25 => Op::CancelAllBut(self.byte()),
            26..=28 => Op::Gather(self.step()),
            29 => Op::DisarmAll,
            _ => Op::Doze(self.byte() % 20 + 1),
        })
    }

    fn when(&mut self) -> When {
        match self.byte() % 16 {
            0 => When::BeforeEpoch,
            1 => When::Past(self.span_ns()),
            2 => When::Now,
            3 => When::Beside(self.which(), 0),
            4 => When::Beside(self.which(), self.span_ns() as i64),
            5 => When::Beside(self.which(), -(self.span_ns() as i64)),
            6..=10 => When::Within(self.span_ns()),
            11..=12 => When::Border {
                level_bits: self.level_bits(),
                slots: u64::from(self.byte()) % 70,
                offset_ns: self.beside(),
            },
            13 => When::Never,
            14 => When::LastInstant,
            _ => When::End(self.span_ns()),
        }
    }

    fn which(&mut self) -> Which {
        match self.byte() % 4 {
            0 => Which::Any(self.short()),
            1 | 2 => Which::Armed(self.byte().into()),
            _ => Which::First,
        }
    }

    fn step(&mut self) -> Step {
        match self.byte() % 8 {
            0..=2 => Step::Within(self.span_ns()),
            3 => Step::Back(self.span_ns()),
            4 => Step::Deadline(self.which(), self.beside()),
            5 => Step::Deadline(Which::First, self.beside()),
            _ => Step::Border {
                level_bits: self.level_bits(),
                offset_ns: self.beside(),
            },
        }
    }

    fn budget(&mut self) -> Budget {
        match self.byte() % 8 {
            0 => Budget::Exactly(0),
            1 => Budget::Exactly(1),
            2 => Budget::Exactly(7),
            3 | 4 => Budget::Exactly(usize::MAX),
            5 => Budget::Repeated(1),
            _ => Budget::Repeated(256),
        }
    }

    /// A length of time of any size below half of the clock's reach.
    fn span_ns(&mut self) -> u64 {
        let bits = u32::from(self.byte()) % 64;
        let mut span_ns = 0;
        for _ in 0..bits.div_ceil(8) {
            span_ns = span_ns << 8 | u64::from(self.byte());
        }
        span_ns & ((1 << bits) - 1)
    }

    fn level_bits(&mut self) -> u32 {
        u32::from(self.byte()) % 48 + 16
    }

    fn beside(&mut self) -> i8 {
        self.byte() as i8 % 2
    }

    fn short(&mut self) -> u16 {
        u16::from(self.byte()) << 8 | u16::from(self.byte())
    }

    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }
}

/// Histories end here: longer ones find nothing that shorter ones do not, and take their time.
const OPS_MAX: usize = 300;
