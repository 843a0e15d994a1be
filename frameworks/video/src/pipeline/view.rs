//! Detects that the camera shows another view: a cut, a moved camera or a switched light changes most of the picture at
//! once, and for longer than a passing object. Performs no I/O.

/// Least fraction of the picture that has changed when the view has.
const CHANGED: f32 = 0.5;
/// Least duration of the change in seconds; the least number of pictures follows.
const LASTING: f64 = 1.0;
const PICTURES: u32 = 2;

/// Observes how much of each picture has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ViewMonitor {
    since: Option<f64>,
    pictures: u32,
}

/// Verdict on the view after a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewState {
    /// The view is the same.
    Same,
    /// Most of the picture has changed, perhaps only for a moment.
    Covered,
    /// The view has changed permanently.
    Changed,
}

impl ViewMonitor {
    /// Records that a fraction `changed` of a picture has changed, 0 to 1.
    pub(super) fn update(&mut self, seconds: f64, changed: f32) -> ViewState {
        if changed < CHANGED {
            *self = ViewMonitor::default();
            return ViewState::Same;
        }
        let since = *self.since.get_or_insert(seconds);
        self.pictures += 1;
        if seconds - since >= LASTING && self.pictures >= PICTURES {
            *self = ViewMonitor::default();
            return ViewState::Changed;
        }
        ViewState::Covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flash_is_no_other_view_and_a_cut_is() {
        let mut view = ViewMonitor::default();
        let mut at = |seconds: f64, changed: f32| view.update(seconds, changed);
        assert_eq!((at(0.0, 0.1), at(0.1, 0.9), at(0.2, 0.1)), (ViewState::Same, ViewState::Covered, ViewState::Same));
        assert_eq!(
            (at(1.0, 0.9), at(1.5, 0.9), at(2.0, 0.9)),
            (ViewState::Covered, ViewState::Covered, ViewState::Changed)
        );
        assert_eq!(at(2.1, 0.2), ViewState::Same);
        // One picture in many seconds may be a bus in front of the camera; the second one decides.
        assert_eq!((at(10.0, 0.9), at(15.0, 0.9)), (ViewState::Covered, ViewState::Changed));
    }
}
