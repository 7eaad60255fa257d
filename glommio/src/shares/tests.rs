use super::*;

struct Fixed(usize);

impl SharesManager for Fixed {
    fn shares(&self) -> usize {
        self.0
    }
}

struct Quick;

impl SharesManager for Quick {
    fn shares(&self) -> usize {
        42
    }

    fn adjustment_period(&self) -> Duration {
        Duration::from_millis(1)
    }
}

#[test]
fn weights_are_clamped_wherever_they_come_from() {
    for (asked, seen) in [(0, 1), (1, 1), (999, 999), (1000, 1000), (5000, 1000)] {
        assert_eq!(Shares::Static(asked).current(), seen);
        assert_eq!(Shares::Dynamic(Rc::new(Fixed(asked))).current(), seen);
    }
}

#[test]
fn the_default_weight_is_the_largest() {
    assert!(matches!(Shares::default(), Shares::Static(1000)));
}

#[test]
fn only_dynamic_shares_are_read_again() {
    assert_eq!(Shares::Static(1).adjustment_period(), None);
    assert_eq!(
        Shares::Dynamic(Rc::new(Fixed(1))).adjustment_period(),
        Some(Duration::from_millis(250))
    );
    assert_eq!(
        Shares::Dynamic(Rc::new(Quick)).adjustment_period(),
        Some(Duration::from_millis(1))
    );
}

#[test]
fn a_manager_prints_its_period_and_its_shares() {
    let manager: Rc<dyn SharesManager> = Rc::new(Quick);
    let text = format!("{manager:?}");
    assert!(text.contains("1ms") && text.contains("42"), "{text}");
}
