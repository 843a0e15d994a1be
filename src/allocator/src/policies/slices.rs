//! Offers of less than a whole agent: an agent is divided into equal slices, each offered separately.
//!
//! All slices have the agent's own mix of resources, so that none is left over in an unusable shape. Only resources
//! that are unreserved, not revocable, not shared, and no special disk are divided; the others are part of the first
//! slice that its client may have.

use resources::{Amount, Name, Quantities, Ranges, Resource, Resources, Value};

/// Division of an agent into equal slices.
#[derive(Clone, Debug)]
pub(crate) struct Slicer {
    /// Number of slices.
    slices: i64,
    total: Quantities,
    ports: u64,
}

impl Slicer {
    /// Returns the division of an agent of `total`, or `None` if the agent is no larger than one slice.
    pub(crate) fn new(total: &Resources, granularity: &Quantities) -> Option<Slicer> {
        let amounts = total.filter(can_be_cut).quantities();
        let parts = granularity.iter().map(|(name, most)| {
            let (has, most) = (amounts.get(&name).thousandths(), most.thousandths().max(1));
            has.div_euclid(most) + i64::from(has.rem_euclid(most) > 0)
        });
        let slices = parts.max().unwrap_or(1);
        (slices > 1).then(|| Slicer { slices, total: amounts, ports: total.ports().count() })
    }

    /// Returns the next slice of the resources that are left. Returns all of them if the slice or the remainder is not
    /// `enough` for an offer of its own.
    pub(crate) fn cut(&self, there: &Resources, enough: impl Fn(&Resources) -> bool) -> Resources {
        let mut slice = Resources::new();
        for resource in there {
            let part = if can_be_cut(resource) { self.part(resource) } else { resource.clone() };
            slice.add(part);
        }
        let left = there - &slice;
        if enough(&slice) && enough(&left) { slice } else { there.clone() }
    }

    fn part(&self, resource: &Resource) -> Resource {
        match resource.value() {
            Value::Scalar(there) => {
                let whole = self.total.get(resource.name());
                let mut part = (whole.thousandths() + self.slices - 1) / self.slices;
                if *resource.name() == Name::Gpus {
                    part = (part + 999) / 1000 * 1000;
                }
                resource.clone().with_value(Value::Scalar(Amount::from_thousandths(part).min(*there)))
            }
            Value::Ranges(ranges) if *resource.name() == Name::Ports => {
                let part = self.ports.div_ceil(self.slices.unsigned_abs());
                resource.clone().with_value(Value::Ranges(lowest(ranges, part)))
            }
            _ => resource.clone(),
        }
    }
}

fn can_be_cut(resource: &Resource) -> bool {
    !(resource.is_reserved() || resource.is_revocable() || resource.is_shared() || resource.disk().is_some())
}

/// Returns the lowest `wanted` numbers of some ranges.
fn lowest(ranges: &Ranges, wanted: u64) -> Ranges {
    let mut left = wanted;
    let mut taken = Vec::new();
    for range in ranges.iter() {
        if left == 0 {
            break;
        }
        let end = range.end.min(range.begin.saturating_add(left - 1));
        taken.push((range.begin, end));
        left -= end - range.begin + 1;
    }
    Ranges::new(taken)
}

#[cfg(test)]
mod tests {
    use resources::{Role, parse_quantities, parse_text};

    use super::*;

    fn set(text: &str) -> Resources {
        parse_text(text, &Role::star()).unwrap()
    }

    fn slicer(total: &str, granularity: &str) -> Option<Slicer> {
        Slicer::new(&set(total), &parse_quantities(granularity).unwrap())
    }

    #[test]
    fn equal_slices_of_everything() {
        let total = "cpus:24;mem:4096;gpus:2;ports:[31000-31009]";
        let slicer = slicer(total, "cpus:8;mem:4096").unwrap();
        let first = slicer.cut(&set(total), |left| !left.is_empty());
        assert_eq!(first, set("cpus:8;mem:1365.334;gpus:1;ports:[31000-31003]"));
        let rest = set(total) - &first;
        let second = slicer.cut(&rest, |left| !left.is_empty());
        let third = slicer.cut(&(rest - &second), |left| !left.is_empty());
        assert_eq!(third, set("cpus:8;mem:1365.332;ports:[31008-31009]"));
    }

    #[test]
    fn small_agents_and_small_rests_stay_whole() {
        assert!(slicer("cpus:4;mem:1024", "cpus:4").is_none());
        assert!(slicer("mem:1024", "cpus:4").is_none(), "nothing of it is limited");
        let slicer = slicer("cpus:8;mem:1024", "cpus:4").unwrap();
        let there = set("cpus:4.005;mem:520");
        assert_eq!(slicer.cut(&there, |left| left.cpus() >= Amount::from_thousandths(10)), there);
    }

    #[test]
    fn reserved_resources_are_not_cut() {
        let total = "cpus:8;cpus(a):6;mem:100";
        let slicer = slicer(total, "cpus:4").unwrap();
        assert_eq!(slicer.cut(&set(total), |left| !left.is_empty()), set("cpus:4;cpus(a):6;mem:50"));
    }
}
