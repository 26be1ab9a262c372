//! Numbers. Korean has two sets: its own for hours, ages and what is counted (세 시, 스무 살, 다섯 권), and one from Chinese
//! for minutes, dates, money and years (십오 분, 오월 삼일, 만 원).

const ONES: [&str; 10] = ["", "하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉"];
const TENS: [&str; 10] = ["", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"];
const SINO: [&str; 10] = ["", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구"];

/// A native number from 1 to 99 as it stands before what it counts: 한, 두, 스무, 스물한. None beyond.
///
/// ```
/// use foveal_grammar::korean::native_number;
///
/// assert_eq!(native_number(3).as_deref(), Some("세"));
/// assert_eq!(native_number(20).as_deref(), Some("스무"));
/// ```
pub fn native_number(n: u32) -> Option<String> {
    if !(1..100).contains(&n) {
        return None;
    }
    let one = match n % 10 {
        1 => "한",
        2 => "두",
        3 => "세",
        4 => "네",
        other => ONES[other as usize],
    };
    let ten = if n == 20 { "스무" } else { TENS[n as usize / 10] };
    Some(format!("{ten}{one}"))
}

/// A Sino-Korean number below 100,000,000, with a space before what 만 leaves: 십오, 백, 이만 삼천. None beyond, and for 0.
///
/// ```
/// use foveal_grammar::korean::sino_number;
///
/// assert_eq!(sino_number(15).as_deref(), Some("십오"));
/// assert_eq!(sino_number(10_000).as_deref(), Some("만"));
/// ```
pub fn sino_number(n: u32) -> Option<String> {
    if n == 0 || n >= 100_000_000 {
        return None;
    }
    let (many, rest) = (n / 10_000, n % 10_000);
    let many = match many {
        0 => String::new(),
        1 => "만".into(),
        _ => format!("{}만", below_10_000(many)),
    };
    let space = if many.is_empty() || rest == 0 { "" } else { " " };
    Some(format!("{many}{space}{}", below_10_000(rest)))
}

fn below_10_000(n: u32) -> String {
    let units = [(1000, "천"), (100, "백"), (10, "십"), (1, "")];
    let digit = |(unit, name): (u32, &str)| match n / unit % 10 {
        0 => String::new(),
        1 if unit > 1 => name.to_owned(),
        digit => format!("{}{name}", SINO[digit as usize]),
    };
    units.map(digit).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_numbers() {
        let numbers = [1, 4, 5, 10, 11, 12, 20, 21, 33, 47, 58, 69, 74, 86, 99].map(|n| native_number(n).unwrap());
        let expected = "한 네 다섯 열 열한 열두 스무 스물한 서른세 마흔일곱 쉰여덟 예순아홉 일흔네 여든여섯 아흔아홉";
        assert_eq!(numbers.join(" "), expected);
        assert_eq!([native_number(0), native_number(100)], [None, None]);
    }

    #[test]
    fn sino_numbers() {
        let table = [
            (1, "일"),
            (6, "육"),
            (10, "십"),
            (11, "십일"),
            (25, "이십오"),
            (30, "삼십"),
            (100, "백"),
            (116, "백십육"),
            (2024, "이천이십사"),
            (5_000, "오천"),
            (10_000, "만"),
            (15_000, "만 오천"),
            (230_000, "이십삼만"),
            (1_000_000, "백만"),
            (12_345_678, "천이백삼십사만 오천육백칠십팔"),
        ];
        for (n, expected) in table {
            assert_eq!(sino_number(n).as_deref(), Some(expected));
        }
        assert_eq!([sino_number(0), sino_number(100_000_000)], [None, None]);
    }
}
