//! Every kind of sentence that the grammar promises is there, and is said as it should be.

use std::collections::HashMap;

use foveal_grammar::{Construction, Grammar, Random};

/// How an English sentence begins, what it has, and what its Korean has.
const EXPECTED: &[(&str, &str, &str)] = &[
    // Greetings.
    ("Hello", ",", "안녕하세요,"),
    ("Good morning", ",", "좋은 아침이에요,"),
    ("Thank you", ",", "고마워요,"),
    ("Goodbye, see you", "", "안녕히 가세요,"),
    ("See you", "tomorrow", "내일"),
    ("Happy birthday", "", "생일 축하해요"),
    ("Nice to meet you", ",", "만나서 반가워요,"),
    // Commands: plain, negative, with please, let's.
    ("Close", "the", "닫으세요"),
    ("Please open", "", "열어 주세요"),
    ("Do not run", "", "뛰지 마세요"),
    ("Let's eat", "together", "같이"),
    ("Let's not", "", "지 말아요"),
    ("Come here", "", "여기로"),
    ("Wait for me", "", "저를 기다리세요"),
    ("Show me", "", "보여 주세요"),
    ("Could you", "", "시겠어요?"),
    ("Don't", "", "지 마세요"),
    ("", ", please.", "주세요"),
    // Modals, also negated.
    ("", "can swim", "수영할 수 있어요"),
    ("", "cannot swim", "수영할 수 없어요"),
    ("", "could not", "수 없었어요"),
    ("You must not", "", "면 안 돼요"),
    ("", "must", "야 해요"),
    ("We have to", "", "야 해요"),
    ("", "does not have to", "지 않아도 돼요"),
    ("", "had to", "야 했어요"),
    ("", "should", "야 해요"),
    ("You should not", "", "면 안 돼요"),
    ("May I", "", "도 돼요?"),
    ("I want to", "", "고 싶어요"),
    ("", "wants to", "고 싶어 해요"),
    ("They do not want to", "", "고 싶어 하지 않아요"),
    ("Do you want to", "", "고 싶어요?"),
    ("Can you", "", "수 있어요?"),
    ("", "likes to", "는 것을 좋아해요"),
    ("", "decided to", "기로 결정했어요"),
    ("", "started to", "기 시작했어요"),
    ("", "need to", "야 해요"),
    ("", "can speak", "할 수 있어요"),
    // Weather.
    ("It is raining", "", "비가 와요"),
    ("It was cold", "", "추웠어요"),
    ("It will snow", "", "눈이 올 거예요"),
    ("The weather is", "today", "오늘은 날씨가"),
    ("It is windy", "", "바람이 불어요"),
    // Times and numbers.
    ("It is", "o'clock", "시예요"),
    ("It is half past", "", "시 반이에요"),
    ("", "at nine", "아홉 시에"),
    ("", "every day", "매일"),
    ("", "birthday is in May", "오월이에요"),
    ("Today is", "Monday", "월요일이에요"),
    ("", "years old", "살이에요"),
    ("How old", "", "몇 살"),
    ("What time", "", "몇 시"),
    ("", "won", "원이에요"),
    ("", "days ago", "일 전에"),
    ("", "last summer", "지난여름에"),
    ("", "yesterday", "어제"),
    ("", "tomorrow", "내일"),
    ("", "on Monday", "월요일에"),
    ("", "in May", "오월에"),
    ("", "thirty", "삼십"),
    // Counters.
    ("", "two students", "학생 두 명"),
    ("", "three books", "세 권"),
    ("", "five", "다섯 개"),
    ("", "dogs", "마리"),
    ("", "cars", "대"),
    ("", "cups of", "잔"),
    ("", "trees", "그루"),
    // Coordination: subjects, objects, verbs, adjectives, clauses.
    ("Tom and", "", "톰과"),
    ("", "coffee and", "커피와"),
    ("", " but I do not like", "는 좋아하지 않아요"),
    ("", "is tall and", "키가 크고"),
    ("The cat and the dog", "", "고양이와 개"),
    ("", "but", "지만"),
    ("", "because I was hungry", "배가 고파서"),
    ("If it rains", "", "비가 오면"),
    ("When I was young", "", "어렸을 때"),
    ("", ", so ", "서"),
    ("", "before", "기 전에"),
    ("", "after", "후에"),
    ("", "because it was cold", "추워서"),
    ("When it rains", "", "비가 올 때"),
    // Progress, past, future, perfect.
    ("", "was reading", "읽고 있었어요"),
    ("", "is sleeping", "자고 있어요"),
    ("", "worked in", "에서 일했어요"),
    ("", "will play", "놀 거예요"),
    ("", "going to", "거예요"),
    ("", "has lost", "잃어버렸어요"),
    ("I will call you", "", "전화할게요"),
    // Questions.
    ("Who is that", "", "누구예요?"),
    ("What are you", "", "무엇을"),
    ("Where does", "live", "어디에 살아요?"),
    ("When did", "", "언제"),
    ("Why are you", "", "왜"),
    ("How do", "go to", "어떻게 가요?"),
    ("How much is this", "", "얼마예요?"),
    ("Which", "read", "어느"),
    ("Who", "?", "누가"),
    ("How many", "", "몇"),
    ("Whose", "", "누구의"),
    ("What is", "name", "이름은 무엇이에요?"),
    ("Did", "homework", "숙제를"),
    ("Where is", "station", "어디에 있어요?"),
    ("What is this", "", "이것은 무엇이에요?"),
    // Possessives, existence, having.
    ("", "my mother", "우리 어머니"),
    ("", "her bag", "그녀의 가방"),
    ("", "teacher's", "선생님의"),
    ("There are", "on the table", "탁자 위에"),
    ("There is", "", "있어요"),
    ("She has", "sister", "언니"),
    ("He has", "brother", "형"),
    ("", "sisters and a", "명과"),
    ("", "does not have", "없어요"),
    ("", "has a cold", "감기에 걸렸어요"),
    ("My head hurts", "", "저는 머리가 아파요"),
    // Comparison.
    ("", "faster than", "보다 더 빨라요"),
    ("", "is the biggest", "가장 큰"),
    ("", "more beautiful than", "보다 더 아름다워요"),
    ("", "the most", "가장"),
    ("Seoul is the", "city in Korea", "한국에서 가장"),
    ("", "taller than", "키가 더 커요"),
    // Adverbs.
    ("", "never eats", "절대 먹지 않아요"),
    ("", "always", "항상"),
    ("", "often", "자주"),
    ("", "too hot", "너무 뜨거워요"),
    ("", "very", "아주"),
    ("", "study more", "더 공부"),
    ("", "quickly", "빨리"),
    ("", "rarely", "거의"),
    // Relative clauses, thoughts, gifts, purposes.
    ("The woman who", "", "여자는"),
    ("The", "who lives", "에 사는"),
    ("The book that I", "", "제가"),
    ("I think he is", "", "다고 생각해요"),
    ("", "said", "다고 말했어요"),
    ("I hope", "", "기를 바라요"),
    ("The ", " me ", "이 저에게"),
    ("", "gave", "께"),
    ("", "showed", "보여 줬어요"),
    ("", "to buy", "사러"),
    ("I do not think", "", "다고 생각하지 않아요"),
    ("Do you think", "", "다고 생각해요?"),
    // Honorifics.
    ("My grandmother", "", "셨어요"),
    ("", "professor is", "세요"),
    ("My grandfather", "", "계세요"),
    // Introductions and contractions.
    ("My name is", "", "제 이름은"),
    ("I am from", "", "에서 왔어요"),
    ("This is my", "", "이것은 제"),
    ("", "don't", "지 않아요"),
    ("", "can't", "수 없어요"),
    ("I'm", "", "저는"),
    ("It's", "", ""),
];

#[test]
fn every_construction_is_there() {
    let mut random = Random::new(3);
    let grammar = Grammar::new();
    let mut missing: Vec<_> = EXPECTED.iter().collect();
    let mut kinds = HashMap::<Construction, usize>::new();
    for _ in 0..1_000_000 {
        let pair = grammar.sample(&mut random);
        *kinds.entry(pair.construction).or_default() += 1;
        let (english, korean) = (pair.english_text(), pair.korean_text());
        missing.retain(|(begins, has, says)| {
            !(english.starts_with(begins) && english.contains(has) && korean.contains(says))
        });
        if missing.is_empty() && kinds.len() == 20 && kinds.values().all(|&count| count > 100) {
            return;
        }
    }
    panic!("not there: {missing:?}; of each kind {kinds:?}");
}

#[test]
fn the_lexicon_has_two_thousand_words_and_more() {
    let grammar = Grammar::new();
    assert!(grammar.words() >= 2_000, "{}", grammar.words());
    assert!(grammar.english_vocabulary().len() > 4_000);
    // By far more sentences than anyone can learn by heart.
    assert!(grammar.size(100_000, &mut Random::new(2)) > 1e15);
}

#[test]
fn the_vocabulary_is_that_of_the_sentences() {
    let grammar = Grammar::new();
    let vocabulary = grammar.english_vocabulary();
    let mut random = Random::new(8);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..400_000 {
        let pair = grammar.sample(&mut random);
        for word in pair.english_text().to_lowercase().split_whitespace() {
            let word = word.trim_end_matches(['.', ',', '?', '!']);
            assert!(vocabulary.contains(word), "{word} in {}", pair.english_text());
            seen.insert(word.to_owned());
        }
    }
    // Few words are so rare that they are not seen once.
    let content = seen.iter().filter(|word| !word.contains('\'')).count();
    let all = vocabulary.iter().filter(|word| !word.contains('\'')).count();
    assert!(content * 100 >= all * 90, "{content} of {all}");
}
