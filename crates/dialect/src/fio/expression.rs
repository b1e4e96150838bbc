//! Arithmetic in parentheses, which fio accepts in place of any number: `bs=(4*1024)`, `size=((1g-4k)/2)`.
//!
//! Only whole numbers: a quotient with a remainder is refused rather than truncated.

/// Maximum nesting of parentheses.
const DEPTH_MAX: u32 = 32;

/// Returns true if `text` is an expression.
pub(super) fn is_meant(text: &str) -> bool {
    text.trim_start().starts_with('(')
}

/// Evaluates `text`; `atom` parses a number with its unit.
///
/// # Errors
/// The expected syntax, and the position.
pub(super) fn evaluate(text: &str, atom: &dyn Fn(&str) -> Result<u64, String>) -> Result<u64, String> {
    let mut reader = Reader { text, rest: text.trim(), atom, depth: 0 };
    let value = reader.sum()?;
    if !reader.rest.is_empty() {
        return Err(format!("`{text}` has `{}` behind its end", reader.rest));
    }
    u64::try_from(value).map_err(|_| format!("`{text}` is {value}: expected 0 to {}", u64::MAX))
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    atom: &'a dyn Fn(&str) -> Result<u64, String>,
    depth: u32,
}

impl Reader<'_> {
    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.one_of(&['+', '-']) {
            let other = self.product()?;
            let sum = if sign == '+' { value.checked_add(other) } else { value.checked_sub(other) };
            value = sum.ok_or_else(|| self.too_large())?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.one_of(&['*', '/']) {
            let other = self.power()?;
            value = match sign {
                '*' => value.checked_mul(other).ok_or_else(|| self.too_large())?,
                _ => self.quotient(value, other)?,
            };
        }
        Ok(value)
    }

    fn quotient(&self, value: i128, divisor: i128) -> Result<i128, String> {
        if divisor == 0 {
            return Err(format!("`{}` divides by 0", self.text));
        }
        match (value.checked_div(divisor), value.checked_rem(divisor)) {
            (Some(quotient), Some(0)) => Ok(quotient),
            (Some(_), _) => Err(format!("`{}`: {value} / {divisor} is not a whole number", self.text)),
            (None, _) => Err(self.too_large()),
        }
    }

    /// Parses a power, which is right-associative.
    fn power(&mut self) -> Result<i128, String> {
        let base = self.factor()?;
        if self.one_of(&['^']).is_none() {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.power()?;
        self.depth -= 1;
        let power = u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent));
        power.ok_or_else(|| self.too_large())
    }

    fn factor(&mut self) -> Result<i128, String> {
        self.deeper()?;
        let value = if self.one_of(&['(']).is_some() {
            let value = self.sum()?;
            if self.one_of(&[')']).is_none() {
                return Err(format!("`{}` has a ( without its )", self.text));
            }
            value
        } else if self.one_of(&['-']).is_some() {
            self.factor()?.checked_neg().ok_or_else(|| self.too_large())?
        } else {
            self.number()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<i128, String> {
        let end = self.rest.find(|sign: char| !sign.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        if number.is_empty() {
            let found = rest.chars().next().map_or_else(|| "its end".to_owned(), |sign| format!("`{sign}`"));
            return Err(format!("`{}` has {found} where a number was expected", self.text));
        }
        self.rest = rest;
        (self.atom)(number).map(i128::from)
    }

    fn one_of(&mut self, signs: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let sign = self.rest.chars().next().filter(|sign| signs.contains(sign))?;
        self.rest = self.rest[1..].trim_start();
        Some(sign)
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("`{}` is nested more than {DEPTH_MAX} deep", self.text));
        }
        Ok(())
    }

    fn too_large(&self) -> String {
        format!("`{}` is too large", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<u64, String> {
        evaluate(text, &|atom| crate::fio::value::bytes(atom, crate::fio::value::KbBase::Compatible))
    }

    #[test]
    fn arithmetic_binds_as_people_write_it() {
        for (text, expected) in [
            ("(4*1024)", 4096),
            ("(4k*2)", 8192),
            ("((2+2)*1k)", 4096),
            ("( 4k + 4096 )", 8192),
            ("(1g/2)", 512 << 20),
            ("(2^20)", 1 << 20),
            ("(2^3^2)", 512),
            ("(10-2-3)", 5),
            ("(1+2*3)", 7),
            ("(-4k+8k)", 4096),
            ("(4k)*2", 8192),
            ("(0x10)", 16),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        for (text, expected) in [
            ("(4*1024", "without its )"),
            ("(4*)", "where a number"),
            ("()", "where a number"),
            ("(1/0)", "by 0"),
            ("(10/4)", "not a whole number"),
            ("(1-2)", "is -1"),
            ("(2^200)", "too large"),
            ("(-((0-2)^127))", "too large"),
            ("((0-2)^127/(0-1))", "too large"),
            ("(4k))", "behind its end"),
            ("(4x)", "is not a size"),
            ("(16t*16t*16t*16t*16t*16t)", "too large"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(value(&"(".repeat(100_000)).unwrap_err().contains("nested"));
        assert!(value(&format!("({}1)", "-".repeat(100_000))).unwrap_err().contains("nested"));
        assert!(value(&format!("(1{})", "^1".repeat(100_000))).unwrap_err().contains("nested"));
    }
}
