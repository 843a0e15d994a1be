//! Resource algebra: scalars in thousandths, ranges, sets, reservations, volumes; text and JSON forms.
#![forbid(unsafe_code)]
