//! Tests of the forms of outputs, and of the suppression of boxes.

use super::*;

fn close(place: &Rect, [x, y, w, h]: [f32; 4]) {
    let near = |a: f32, b: f32| (a - b).abs() < 1e-3;
    assert!(near(place.x, x) && near(place.y, y) && near(place.w, w) && near(place.h, h), "{place:?}");
}

#[test]
fn forms_are_known_by_their_shapes() {
    assert_eq!(Layout::of(&[1, 2100, 85]), Ok(Layout::Rows { boxes: 2100, classes: 80 }));
    assert_eq!(Layout::of(&[1, 84, 8400]), Ok(Layout::Columns { boxes: 8400, classes: 80 }));
    assert_eq!(Layout::of(&[1, 5, 8400]), Ok(Layout::Columns { boxes: 8400, classes: 1 }));
    assert_eq!(Layout::of(&[1, 85, 22, 22]), Ok(Layout::Grid { classes: 80, rows: 22, columns: 22 }));
    for shape in [&[1, 1000][..], &[1, 22, 2100], &[2, 84, 8400], &[1, 3, 80, 80, 85], &[]] {
        assert!(Layout::of(shape).unwrap_err().contains("not that of a detector"), "{shape:?}");
    }
}

#[test]
fn rows_and_columns_have_the_same_boxes() {
    let (boxes, size) = (3, (200, 100));
    // A person, a car, and a person with a low score.
    let places = [[50.0, 50.0, 20.0, 40.0], [100.0, 50.0, 60.0, 30.0], [10.0, 10.0, 5.0, 5.0]];
    let classes = [(0, 0.9), (2, 0.8), (0, 0.1)];
    let mut rows = vec![0.0; boxes * 85];
    let mut columns = vec![0.0; boxes * 84];
    for number in 0..boxes {
        let (class, score) = classes[number];
        rows[number * 85..number * 85 + 4].copy_from_slice(&places[number]);
        (rows[number * 85 + 4], rows[number * 85 + 5 + class]) = (1.0, score);
        (0..4).for_each(|value| columns[value * boxes + number] = places[number][value]);
        columns[(4 + class) * boxes + number] = score;
    }
    let of_rows = decode(&Layout::Rows { boxes, classes: 80 }, &rows, size);
    assert_eq!(of_rows, decode(&Layout::Columns { boxes, classes: 80 }, &columns, size));
    assert_eq!(of_rows.len(), 2);
    close(&of_rows[0].object.place, [0.2, 0.3, 0.1, 0.4]);
    assert_eq!((of_rows[0].object.vehicle, of_rows[1].object.vehicle), (Some(false), Some(true)));
    // A truncated output has no boxes in its missing part, and a box with an invalid number is left out.
    assert!(decode(&Layout::Columns { boxes, classes: 80 }, &columns[..9], size).is_empty());
    rows[0] = f32::NAN;
    assert_eq!(decode(&Layout::Rows { boxes, classes: 80 }, &rows, size).len(), 1);
}

#[test]
fn cells_of_a_grid() {
    let (layout, cells) = (Layout::Grid { classes: 1, rows: 2, columns: 2 }, 4);
    let mut values = vec![0.0; 6 * cells];
    // The last cell: its centre is half a cell to the right; half as wide and high as the picture.
    let cell = 3;
    values[cell] = 1.0;
    values[cells + cell] = 0.5_f32.atanh();
    values[5 * cells + cell] = 0.9;
    let found = decode(&layout, &values, (352, 352));
    assert_eq!(found.len(), 1);
    close(&found[0].object.place, [0.5, 0.25, 0.5, 0.5]);
    // A class alone is not enough.
    values[cell] = 0.2;
    assert!(decode(&layout, &values, (352, 352)).is_empty());
}

#[test]
fn boxes_of_one_object_are_one() {
    let one = |x: f32, w: f32, score: f32, tile: usize, vehicle: bool| Candidate {
        score,
        object: Object { place: Rect { x, y: 0.2, w, h: 0.4 }, vehicle: Some(vehicle) },
        tile,
    };
    let whole = one(0.2, 0.2, 0.8, 0, false);
    let nearly = one(0.21, 0.2, 0.9, 0, false);
    assert_eq!(suppress(vec![whole, nearly]), [nearly.object]);
    // A part of the object in another tile. In the same tile it is another person.
    let part = |tile| one(0.3, 0.08, 0.7, tile, false);
    assert_eq!(suppress(vec![whole, part(1)]), [whole.object]);
    assert_eq!(suppress(vec![whole, part(0)]).len(), 2);
    // A person in front of a car.
    assert_eq!(suppress(vec![whole, one(0.2, 0.2, 0.7, 0, true)]).len(), 2);
    let moved = whole.within(&Rect { x: 0.5, y: 0.5, w: 0.5, h: 0.5 }, 3).expect("inside");
    close(&moved.object.place, [0.6, 0.6, 0.1, 0.2]);
    assert_eq!(whole.within(&Rect { x: 1.0, y: 0.0, w: 1.0, h: 1.0 }, 0), None);
}
