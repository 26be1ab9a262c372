//! Of every exercise the right answer passes, and each common mistake fails with a message of its own.

use foveal_exercises::{Answer, EXERCISES, Exercise, Expected, Task, Verdict};

/// As a learner would type it, to the digits that are asked for.
fn typed(answer: &Answer, task: &Task) -> String {
    match (answer, &task.expected) {
        (Answer::Numbers(values), Expected::Numbers { decimals, .. }) => {
            values.iter().map(|x| format!("{x:.decimals$}")).collect::<Vec<_>>().join(" ")
        }
        (Answer::Choice(at), _) => char::from(b'a' + *at as u8).to_string(),
        (Answer::Head([layer, head]), _) => format!("{layer}.{head}"),
        other => panic!("an answer of another kind: {other:?}"),
    }
}

fn tasks() -> impl Iterator<Item = (&'static Exercise, Task)> {
    static ALL: [Exercise; 40] = EXERCISES;
    ALL.iter().map(|exercise| (exercise, exercise.task().unwrap_or_else(|error| panic!("{}: {error}", exercise.name))))
}

#[test]
fn right_answers_pass_and_mistakes_are_told() {
    for (Exercise { name, .. }, task) in tasks() {
        if matches!(task.expected, Expected::Code(_)) {
            continue;
        }
        let right = task.right_answer();
        assert_eq!(task.check(&right), Verdict::Right, "{name}: {right}");
        assert!(task.mistakes.len() >= 2, "{name} knows too few mistakes");
        for mistake in &task.mistakes {
            let typed = typed(&mistake.answer, &task);
            let expected = Verdict::Wrong { why: mistake.why.clone(), mistake: Some(mistake.name) };
            assert_eq!(task.check(&typed), expected, "{name}: {typed} should be told as {}", mistake.name);
        }
        let reasons: std::collections::BTreeSet<_> = task.mistakes.iter().map(|mistake| &mistake.why.en).collect();
        let names: std::collections::BTreeSet<_> = task.mistakes.iter().map(|mistake| mistake.name).collect();
        let heads = matches!(task.expected, Expected::Head { .. });
        assert!(heads || reasons.len() == task.mistakes.len(), "{name}: two mistakes have the same message");
        assert!(heads || names.len() == task.mistakes.len(), "{name}: two mistakes have the same name");
    }
}

#[test]
fn every_text_is_there_in_both_languages() {
    let korean = |text: &str| text.chars().any(|c| ('가'..='힣').contains(&c));
    for (Exercise { name, title, chapter, .. }, task) in tasks() {
        assert!((1..=14).contains(chapter) && korean(title.ko), "{name}");
        assert!(!task.hints.is_empty(), "{name} has no hint");
        let told = task.mistakes.iter().map(|mistake| &mistake.why);
        let code = if let Expected::Code(code) = &task.expected {
            code.mistakes.iter().map(|m| &m.why).collect()
        } else {
            vec![]
        };
        let texts = [&task.question, &task.explanation].into_iter().chain(told).chain(code);
        for text in texts {
            assert!(!text.en.is_empty() && !korean_only(&text.en) && korean(&text.ko), "{name}: {text:?}");
            // One level of speech: 합니다체 throughout.
            let informal = ["해요", "세요", "이에요", "예요", "한다.", "이다."];
            assert!(informal.iter().all(|ending| !text.ko.contains(ending)), "{name}: {}", text.ko);
        }
        // Hints may be formulas, which read the same in both.
        assert!(task.hints.iter().all(|hint| !hint.en.is_empty() && !hint.ko.is_empty()), "{name}");
    }
}

/// English texts hold Korean words only as examples.
fn korean_only(text: &str) -> bool {
    let hangul = text.chars().filter(|c| ('가'..='힣').contains(c)).count();
    2 * hangul > text.chars().count()
}

#[test]
fn all_kinds_and_chapters_are_there() {
    let mut kinds = [0; 4];
    let mut chapters = std::collections::BTreeSet::new();
    for (exercise, task) in tasks() {
        chapters.insert(exercise.chapter);
        kinds[match task.expected {
            Expected::Numbers { .. } => 0,
            Expected::Choice { .. } => 1,
            Expected::Head { .. } => 2,
            Expected::Code(_) => 3,
        }] += 1;
    }
    assert!(kinds[0] >= 15 && kinds[1] >= 8 && kinds[2] == 3 && kinds[3] == 6, "{kinds:?}");
    assert_eq!(chapters, (1..=14).collect());
}

/// What the choice says about positions is what the lab measures.
#[test]
fn the_lab_agrees_on_who_is_blind_to_order() {
    let lab = foveal_labs::find("positions").unwrap();
    let report = lab.run(&foveal_labs::Knobs::new(), foveal_labs::Watch::silent()).unwrap();
    let sees = |way: &str| {
        let ways = report.figures["ways"].as_array().unwrap();
        ways.iter().find(|found| found["positions"] == way).unwrap()["sees_order"].as_bool().unwrap()
    };
    assert!(!sees("ALiBi") && sees("RoPE") && sees("causal mask") && sees("sines added to the input"));
}

#[test]
fn heads_switched_off_are_those_of_the_model() {
    let found = foveal_exercises::switched_off().unwrap();
    assert_eq!(found.without.len(), found.layers * (found.heads + 1));
    let sum = |next: &[(String, f32)]| next.iter().map(|(_, p)| p).sum::<f32>();
    assert!(found.next.len() == 5 && sum(&found.next) <= 1.0 && found.next[0].1 >= found.next[4].1);
    let layers = || found.without.iter().filter(|without| without.head.is_none());
    assert_eq!(layers().count(), found.layers);
    assert!(layers().any(|layer| layer.loss > found.loss + 0.1), "the heads of some layer matter");
    // Against another way to the same number.
    let open = foveal_models::OpenModel::open("shakespeare").unwrap();
    let model = open.model.as_language_model().unwrap();
    let tokens = open.tokenizer().unwrap().encode(found.text).unwrap();
    for (head, change) in foveal_models::analysis::ablation::each(model, tokens.ids()).unwrap() {
        let without = found.without.iter().find(|w| w.layer == head.site.layer && w.head == Some(head.head)).unwrap();
        assert!((without.loss - found.loss - change).abs() < 1e-4, "{head:?}");
    }
}
