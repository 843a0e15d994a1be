//! The speed of a scenario's time on a real cluster, and policies scaled to it.

use std::time::Duration;

use allocator::policies::{Policies, Refusing};

/// The speed at which a scenario runs on a real cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Seconds of the scenario that pass in a real second.
    pub speed: f64,
    /// Whether tasks use a processor for all of their time; otherwise they sleep.
    pub burn: bool,
}

impl Default for Pace {
    /// Returns the scenario's own speed, with tasks that sleep.
    fn default() -> Pace {
        Pace { speed: 1.0, burn: false }
    }
}

impl Pace {
    /// Converts a duration of the scenario to real time.
    pub fn real(&self, span: Duration) -> Duration {
        if self.speed == 1.0 {
            return span;
        }
        // A duration that overflows stays unscaled.
        Duration::try_from_secs_f64(span.as_secs_f64() / self.speed).unwrap_or(span)
    }

    /// Converts a real duration to the scenario's time.
    pub fn simulated(&self, real: Duration) -> Duration {
        Duration::try_from_secs_f64(real.as_secs_f64() * self.speed).unwrap_or(Duration::MAX)
    }
}

/// Returns the policies with all durations converted to real time.
pub fn scaled(policies: &Policies, pace: Pace) -> Policies {
    let mut policies = policies.clone();
    let short = |span: &mut Option<Duration>| *span = span.map(|span| pace.real(span));
    let refusing = |refusing: &mut Refusing| {
        let Refusing { default, min, max, timed_out, backoff } = refusing;
        [default, min, max, timed_out].into_iter().for_each(short);
        if let Some(backoff) = backoff {
            backoff.max = pace.real(backoff.max);
        }
    };
    short(&mut policies.offer_timeout);
    if let Some(adaptive) = &mut policies.adaptive_timeout {
        (adaptive.min, adaptive.max) = (pace.real(adaptive.min), pace.real(adaptive.max));
    }
    refusing(&mut policies.refusal);
    for role in policies.roles.values_mut() {
        short(&mut role.offer_timeout);
        refusing(&mut role.refusal);
    }
    policies.frameworks.values_mut().for_each(|framework| short(&mut framework.offer_timeout));
    policies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_divided_and_nothing_else() {
        let text = "offer_timeout = '10s'\nmax_offered_share = 0.5\nrefusal = { min = '1s', backoff = { factor = 2.0, max = '1m' } }\n\
                    [roles.a]\noffer_timeout = '20s'\n[frameworks.f]\noffer_timeout = '30s'\n";
        let divided = "offer_timeout = '1s'\nmax_offered_share = 0.5\nrefusal = { min = '100ms', backoff = { factor = 2.0, max = '6s' } }\n\
                       [roles.a]\noffer_timeout = '2s'\n[frameworks.f]\noffer_timeout = '3s'\n";
        let read = |text: &str| toml::from_str::<Policies>(text).unwrap();
        let pace = Pace { speed: 10.0, burn: false };
        assert_eq!(scaled(&read(text), pace), read(divided));
        assert_eq!(scaled(&read(text), Pace::default()), read(text));
        assert_eq!(pace.simulated(pace.real(Duration::from_secs(7))), Duration::from_secs(7));
    }
}
