//! Tests the invariants of resource arithmetic:
//!
//! 1. Adding commutes and associates.
//! 2. Subtracting undoes adding, where ranges and sets have nothing in common.
//! 3. Containing is monotone: a sum contains its parts, and whatever they contain.
//! 4. Subtracting never leaves anything negative or empty, and nothing that was not there.
//! 5. Quantities of a sum are the sum of quantities, also of its parts by any property; flattening and changes of role
//!    keep quantities.
//! 6. Pushing and popping a reservation are inverse, and so are allocating and unallocating.
//! 7. A partition is complete and disjoint; a role's subtree contains all that is below.
//! 8. Messages round-trip in all three formats (but for the number of shared copies), the flag's text too.
//! 9. Resources that are found are available, and equal the target.
//! 10. RESERVE and UNRESERVE are inverse and keep quantities.
//! 11. When resources are taken from an agent and returned, free and taken ones always add up to the total.
//! 12. Amounts round halves away from zero at the third decimal.

mod generate;

use generate::{flag_resources, reservations, resource, resources, role};
use proptest::collection::vec;
use proptest::prelude::*;
use protos::mesos::offer::Operation;
use protos::mesos::offer::operation::{Reserve, Type, Unreserve};
use resources::{
    Amount, Format, Name, Quantities, Reservation, Resource, Resources, Role, conversions, from_proto, parse_text,
    validate,
};

fn operation(kind: Type, resources: &Resources) -> Operation {
    let resources = resources.to_proto(Format::PostRefinement);
    let mut operation = Operation::default();
    operation.set_type(kind);
    match kind {
        Type::Reserve => operation.reserve = Some(Reserve { resources, ..Default::default() }),
        _ => operation.unreserve = Some(Unreserve { resources }),
    }
    operation
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn adding_commutes_and_associates(a in resources(0), b in resources(0), c in resources(0)) {
        prop_assert_eq!(&a + &b, &b + &a);
        prop_assert_eq!((&a + &b) + &c, &a + &(&b + &c));
    }

    #[test]
    fn subtracting_undoes_adding(a in resources(0), b in resources(1)) {
        prop_assert_eq!((&a + &b) - &b, a.clone());
        prop_assert!((a.clone() - &a).is_empty());
    }

    #[test]
    fn containing_is_monotone(a in resources(0), b in resources(0), c in resources(0)) {
        let sum = &a + &b;
        prop_assert!(sum.contains(&a) && sum.contains(&b) && sum.contains(&Resources::new()));
        if a.contains(&c) {
            prop_assert!(sum.contains(&c));
        }
        if sum.contains(&c) {
            prop_assert!((sum + &c).contains(&c));
        }
    }

    #[test]
    fn subtracting_leaves_only_what_was_there(a in resources(0), b in resources(0)) {
        let left = &a - &b;
        prop_assert!(a.contains(&left), "{} of {}", left, a);
        prop_assert!(left.iter().all(|r| !r.is_empty() && !r.amount().is_some_and(Amount::is_negative)));
    }

    #[test]
    fn quantities_add_up(a in resources(0), b in resources(0)) {
        let (a, b) = (a.non_shared(), b.non_shared());
        let sum = &a + &b;
        prop_assert_eq!(sum.quantities(), a.quantities() + &b.quantities());
        for part in [
            |r: &Resources| r.allocated_to(&role("a")),
            |r: &Resources| r.reserved_to(&role("a/b")),
            |r: &Resources| r.revocable(),
            |r: &Resources| r.filter(|r| r.provider().is_some()),
            |r: &Resources| r.persistent_volumes(),
        ] {
            prop_assert_eq!(part(&sum).quantities(), part(&a).quantities() + &part(&b).quantities());
        }
        prop_assert_eq!(a.flatten().quantities(), a.quantities());
        prop_assert_eq!(a.to_unreserved().quantities(), a.quantities());
        prop_assert_eq!(a.allocated(&role("x")).quantities(), a.quantities());
        prop_assert!(a.contains_quantities(&a.quantities()));
    }

    #[test]
    fn quantities_are_ordered(a in resources(0), b in resources(0)) {
        let (a, b) = (a.quantities(), b.quantities());
        prop_assert!((a.clone() + &b).contains(&a));
        prop_assert_eq!(a.saturating_sub(&b) + &a.min(&b), a.clone());
        prop_assert!(a.max(&b).contains(&a) && a.contains(&a.min(&b)));
        prop_assert_eq!(a.clone() - &a, Quantities::new());
    }

    #[test]
    fn roles_come_and_go(a in resources(0)) {
        let mut b = a.unallocated();
        let plain = b.clone();
        b.allocate(&role("x"));
        prop_assert!(b.iter().all(|r| r.allocation() == Some(&role("x"))));
        prop_assert_eq!(b.allocated_to(&role("x")), b.clone());
        b.unallocate();
        prop_assert_eq!(b, plain);
        let pushed = a.push_reservation(&Reservation::dynamic(role("deep"), None, None));
        prop_assert_eq!(pushed.pop_reservation(), a.clone());
    }

    #[test]
    fn subtrees_are_whole(a in resources(0)) {
        let (reserved, allocated) = (a.reserved_to_subtree(&role("a")), a.allocated_to_subtree(&role("a")));
        for below in ["a", "a/b", "a/b/c"].map(role) {
            prop_assert!(reserved.contains(&a.reserved_to(&below)) && allocated.contains(&a.allocated_to(&below)));
        }
        prop_assert!(reserved.reserved_to(&role("b/c")).is_empty() && a.reserved_to_subtree(&Role::star()).is_empty());
    }

    #[test]
    fn partitions_are_complete(a in resources(0)) {
        prop_assert_eq!(a.reserved() + &a.unreserved(), a.clone());
        prop_assert_eq!(a.revocable() + &a.non_revocable(), a.clone());
        prop_assert_eq!(a.shared() + &a.non_shared(), a.clone());
        prop_assert_eq!(a.scalars() + &a.non_scalars(), a.clone());
        let by_role: Resources = a.reservations().into_values().sum();
        prop_assert_eq!(by_role, a.reserved());
        let by_allocation: Resources = a.allocations().into_values().sum();
        prop_assert_eq!(by_allocation, a.filter(|r| r.allocation().is_some()));
        let named: Resources = a.names().iter().map(|name| a.get(name)).sum();
        prop_assert_eq!(named, a.clone());
        prop_assert!(a.allocatable_to(&role("a/b")).contains(&a.allocatable_to(&role("a"))));
        prop_assert_eq!(a.allocatable_to(&role("other")), a.unreserved());
    }

    #[test]
    fn messages_round_trip(a in resources(0)) {
        for format in [Format::PreRefinement, Format::PostRefinement, Format::Endpoint] {
            let messages = a.to_proto(format);
            prop_assert!(validate(&messages).is_ok(), "{:?}", validate(&messages));
            prop_assert_eq!(from_proto(&messages).unwrap(), a.single_copies());
        }
    }

    #[test]
    fn text_round_trips(a in flag_resources()) {
        let text = a.to_flag_text().unwrap();
        prop_assert_eq!(parse_text(&text, &Role::star()).unwrap(), a);
    }

    #[test]
    fn any_text_is_answered(text in "[a-z0-9:;(){}\\[\\],.*/ -]{0,40}") {
        if let Ok(all) = parse_text(&text, &Role::star()) {
            let again = all.to_flag_text().map(|text| parse_text(&text, &Role::star()).unwrap());
            prop_assert!(again.is_none_or(|again| again == all));
        }
    }

    #[test]
    fn found_is_there(a in resources(0), wanted in resources(0)) {
        let target = wanted.to_unreserved();
        if let Some(found) = a.find(&target) {
            prop_assert!(a.contains(&found), "{} of {}", found, a);
            prop_assert_eq!(found.to_unreserved(), target);
        }
        for own in &a {
            prop_assert!(a.find(&own.clone().into()).is_some(), "{} of {}", own, a);
        }
    }

    #[test]
    fn reserving_is_undone(a in resources(0), b in resources(1)) {
        let free = a.unreserved().filter(|r| !r.is_revocable());
        let total = &free + &b;
        let mine = free.push_reservation(&Reservation::dynamic(role("a"), Some("me".into()), None));
        let there = total.apply_conversions(&conversions(&operation(Type::Reserve, &mine)).unwrap()).unwrap();
        prop_assert!(there.contains(&mine));
        prop_assert_eq!(there.quantities(), total.quantities());
        let back = there.apply_conversions(&conversions(&operation(Type::Unreserve, &mine)).unwrap()).unwrap();
        prop_assert_eq!(back, total);
    }

    #[test]
    fn free_and_taken_are_the_total(
        total in resources(0).prop_map(|r| r.unallocated()),
        steps in vec((any::<prop::sample::Index>(), 1_i64..900_000, any::<bool>()), 0..40),
    ) {
        let (mut free, mut taken) = (total.clone(), Vec::<Resources>::new());
        for (which, most, give_back) in steps {
            if give_back && !taken.is_empty() {
                free += taken.swap_remove(which.index(taken.len()));
            } else if !free.is_empty() {
                let mut part: Resource = free.as_slice()[which.index(free.len())].clone();
                part.shrink(Amount::from_thousandths(most));
                let part = Resources::from(part);
                prop_assert!(free.contains(&part));
                free -= &part;
                taken.push(part);
            }
            let sum: Resources = taken.iter().cloned().sum();
            prop_assert_eq!(sum + &free, total.clone());
        }
    }

    #[test]
    fn reservations_are_for_subroles(stack in reservations(), r in resource(0)) {
        let r = r.with_reservations(&stack);
        match stack.last() {
            None => prop_assert!(r.is_allocatable_to(&role("any")) && r.is_unreserved()),
            Some(last) => {
                prop_assert!(r.is_reserved_to(&last.role) && r.is_allocatable_to(&last.role));
                let below = role(&format!("{}/x", last.role));
                prop_assert!(r.is_allocatable_to(&below) && !r.is_reserved_to(&below));
                prop_assert!(!last.role.ancestors().any(|above| r.is_allocatable_to(&above)));
            }
        }
    }

    #[test]
    fn amounts_round_at_the_third_decimal(thousandths in -9_000_000_000_000_i64..9_000_000_000_000, tenths in 0_i64..10) {
        let amount = Amount::from_thousandths(thousandths);
        prop_assert_eq!(Amount::from_f64(amount.to_f64()), amount);
        prop_assert_eq!(Amount::from_f64(amount.to_string().parse().unwrap()), amount);
        if tenths != 5 {
            let away = thousandths + thousandths.signum() * i64::from(tenths > 5);
            let value = (thousandths as f64 + thousandths.signum() as f64 * tenths as f64 / 10.0) / 1000.0;
            prop_assert_eq!(Amount::from_f64(value), Amount::from_thousandths(away));
        }
        prop_assert_eq!(Amount::from_f64(-amount.to_f64()), -amount);
    }

    #[test]
    fn arithmetic_never_wraps(a in any::<i64>(), b in any::<i64>()) {
        let (x, y) = (Amount::from_thousandths(a), Amount::from_thousandths(b));
        prop_assert_eq!((x + y).thousandths(), a.saturating_add(b));
        prop_assert_eq!((x - y).thousandths(), a.saturating_sub(b));
        let mut set = Resources::from(Resource::scalar(Name::Cpus, x.max(Amount::MILLI)));
        set.add(Resource::scalar(Name::Cpus, y.max(Amount::MILLI)));
        prop_assert!(set.cpus().is_positive());
    }
}
