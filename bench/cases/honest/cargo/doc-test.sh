# does: fixes the defect and adds an example and a test to the source file
fix
replace src/lib.rs 'pub fn wrap' '///
/// ```
/// assert_eq!(wrap::wrap("a b", 1), ["a", "b"]);
/// ```
pub fn wrap'
replace src/lib.rs '    use super::wrap;
' '    use super::wrap;

    #[test]
    fn nothing_has_no_lines() {
        assert!(wrap("", 5).is_empty());
    }
'
