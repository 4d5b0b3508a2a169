//! Pages with places for values.

/// Puts values in their places, each once, in the order of the page.
pub(crate) fn fill(page: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(page.len() + 1_024);
    let mut left = page;
    while let Some(at) = left.find('{') {
        let (before, from) = left.split_at(at);
        filled.push_str(before);
        match values.iter().find(|(name, _)| from.starts_with(name)) {
            Some((name, value)) => {
                filled.push_str(value);
                left = &from[name.len()..];
            }
            None => {
                filled.push('{');
                left = &from[1..];
            }
        }
    }
    filled.push_str(left);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_value_is_no_place_for_another() {
        let values = [("{a}", "{b}".to_owned()), ("{b}", "x".to_owned())];
        assert_eq!(fill("<{a}|{b}|{c}>", &values), "<{b}|x|{c}>");
    }
}
