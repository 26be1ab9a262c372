//! Particles, in the shape that the noun before them calls for.
//!
//! | after a vowel | after a consonant |
//! |---|---|
//! | 는 가 를 와 예요 였어요 라서 면 라고 | 은 이 을 과 이에요 이었어요 이라서 이면 이라고 |
//! | 로, and so after ㄹ | 으로 |
//! | 에 에서 에게 께 의 도 보다 이고 이지만 인 일 | the same |

use super::hangul::Syllable;

/// What a particle says about its noun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Particle {
    /// 은/는: what the sentence is about.
    Topic,
    /// 이/가: who does it.
    Subject,
    /// 을/를: what it is done to.
    Object,
    /// 와/과: together with.
    And,
    /// (으)로: by means of.
    By,
    /// 에: where something is, where to.
    At,
    /// 에서: where something is done.
    In,
    /// 에게: to whom.
    To,
    /// 께: to whom, of someone who is looked up to.
    ToElder,
    /// 도: too.
    Also,
    /// 보다: than.
    Than,
    /// 의: whose.
    Of,
    /// 예요/이에요: is.
    Is,
    /// 였어요/이었어요: was.
    Was,
    /// 이고: is, and.
    IsAnd,
    /// 이지만: is, but.
    IsBut,
    /// 였지만/이었지만: was, but.
    WasBut,
    /// 라서/이라서: because it is.
    IsBecause,
    /// 면/이면: if it is.
    IsIf,
    /// 인: who is.
    WhoIs,
    /// 일: 때 follows, when one is.
    IsWhen,
    /// 였을/이었을: 때 follows, when one was.
    WasWhen,
    /// 라고/이라고: that it is.
    IsQuote,
    /// 였다고/이었다고: that it was.
    WasQuote,
}

impl Particle {
    /// The particle as it is spelt after a noun. What ends in no Hangul syllable counts as ending in a vowel.
    pub fn after(self, noun: &str) -> &'static str {
        let last = noun.chars().next_back().and_then(Syllable::of).and_then(|syllable| syllable.last);
        let (vowel, consonant) = match self {
            Particle::Topic => ("는", "은"),
            Particle::Subject => ("가", "이"),
            Particle::Object => ("를", "을"),
            Particle::And => ("와", "과"),
            Particle::By if last == Some('ㄹ') => ("로", "로"),
            Particle::By => ("로", "으로"),
            Particle::At => ("에", "에"),
            Particle::In => ("에서", "에서"),
            Particle::To => ("에게", "에게"),
            Particle::ToElder => ("께", "께"),
            Particle::Also => ("도", "도"),
            Particle::Than => ("보다", "보다"),
            Particle::Of => ("의", "의"),
            Particle::Is => ("예요", "이에요"),
            Particle::Was => ("였어요", "이었어요"),
            Particle::IsAnd => ("이고", "이고"),
            Particle::IsBut => ("이지만", "이지만"),
            Particle::WasBut => ("였지만", "이었지만"),
            Particle::IsBecause => ("라서", "이라서"),
            Particle::IsIf => ("면", "이면"),
            Particle::WhoIs => ("인", "인"),
            Particle::IsWhen => ("일", "일"),
            Particle::WasWhen => ("였을", "이었을"),
            Particle::IsQuote => ("라고", "이라고"),
            Particle::WasQuote => ("였다고", "이었다고"),
        };
        if last.is_some() { consonant } else { vowel }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 10] = ["나무", "책", "돈", "서울", "닭", "집", "옷", "방", "꽃", "무릎"];

    #[test]
    fn particles_follow_the_final_consonant() {
        let all = |particle: Particle| WORDS.map(|word| particle.after(word));
        assert_eq!(all(Particle::Topic), ["는", "은", "은", "은", "은", "은", "은", "은", "은", "은"]);
        assert_eq!(all(Particle::Subject), ["가", "이", "이", "이", "이", "이", "이", "이", "이", "이"]);
        assert_eq!(all(Particle::Object), ["를", "을", "을", "을", "을", "을", "을", "을", "을", "을"]);
        assert_eq!(all(Particle::And), ["와", "과", "과", "과", "과", "과", "과", "과", "과", "과"]);
        assert_eq!(all(Particle::By), ["로", "으로", "으로", "로", "으로", "으로", "으로", "으로", "으로", "으로"]);
        assert_eq!(["의사", "학생"].map(|word| Particle::Is.after(word)), ["예요", "이에요"]);
        assert_eq!(["의사", "학생"].map(|word| Particle::Was.after(word)), ["였어요", "이었어요"]);
        for same in [Particle::At, Particle::In, Particle::To, Particle::Of] {
            assert!(all(same).iter().all(|particle| *particle == same.after("나무")));
        }
    }

    #[test]
    fn every_final_consonant_counts_and_only_l_is_special() {
        for c in '가'..='갛' {
            let closed = c != '가';
            let word = c.to_string();
            assert_eq!(Particle::Object.after(&word), if closed { "을" } else { "를" }, "{c}");
            assert_eq!(Particle::By.after(&word), if closed && c != '갈' { "으로" } else { "로" }, "{c}");
        }
        assert_eq!([Particle::Topic.after("TV"), Particle::Object.after("")], ["는", "를"]);
    }
}
