//! Checks texts of resources, attributes, quantities and roles.

use resources::{
    Format, Role, attributes_text, from_proto, parse_alternatives, parse_attributes, parse_flag, parse_quantities,
    parse_text,
};

/// Parses any text. An accepted one is the same after writing and reading.
pub fn resource_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let reserved = Role::parse("r/s").unwrap_or(Role::star());
    for role in [Role::star(), reserved] {
        check_resources(text, &role);
    }
    if let Ok(attributes) = parse_attributes(text) {
        let again = parse_attributes(&attributes_text(&attributes));
        assert_eq!(again.map(|again| again.len()), Ok(attributes.len()));
    }
    if let Ok(sums) = parse_quantities(text)
        && !sums.is_empty()
    {
        let map = sums.to_map();
        assert_eq!(resources::Quantities::from_map(&map).map(|again| again.to_map()), Ok(map));
    }
    let _ = parse_alternatives(text);
    if let Ok(role) = Role::parse(text) {
        assert!(role.ancestors().all(|above| role.is_strict_subrole_of(&above)));
    }
}

fn check_resources(text: &str, role: &Role) {
    let Ok(all) = parse_flag(text, role) else { return };
    for format in [Format::PreRefinement, Format::PostRefinement, Format::Endpoint] {
        assert_eq!(from_proto(&all.to_proto(format)).as_ref(), Ok(&all));
    }
    if let Some(text) = all.to_flag_text() {
        assert_eq!(parse_text(&text, &Role::star()), Ok(all.clone()));
    }
    assert!(all.contains(&all) && (all.clone() - &all).is_empty());
    let _ = (all.to_string(), all.summary(), all.quantities());
}
