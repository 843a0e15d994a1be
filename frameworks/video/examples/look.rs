//! tmp
fn main() {
    let s = video::scene::Square::new(1, 90.0);
    for n in [300u64, 500] {
        let mut f = s.frame(n);
        for b in s.boxes(n as f64 / video::scene::SQUARE_FPS) { video::output::outline(&mut f, &b.place, video::frame::Colour::rgb(255,255,0)); }
        std::fs::write(format!("/tmp/vid/sq{n}.png"), video::output::png(&f).unwrap()).unwrap();
    }
}
