//! People and animals.

use super::kind::*;
use super::{Kinds, Noun, each};

const P: Kinds = PERSON;
const J: Kinds = PERSON | JOB;

/// People, without names.
#[rustfmt::skip]
pub(in super::super) const PEOPLE: &[Noun] = &[
    each("student", "students", "학생", "명", J),
    each("teacher", "teachers", "선생님", "명", J | ELDER),
    each("doctor", "doctors", "의사", "명", J),
    each("nurse", "nurses", "간호사", "명", J),
    each("singer", "singers", "가수", "명", J),
    each("chef", "chefs", "요리사", "명", J),
    each("farmer", "farmers", "농부", "명", J),
    each("writer", "writers", "작가", "명", J),
    each("painter", "painters", "화가", "명", J),
    each("scientist", "scientists", "과학자", "명", J),
    each("lawyer", "lawyers", "변호사", "명", J),
    each("actor", "actors", "배우", "명", J),
    each("soldier", "soldiers", "군인", "명", J),
    each("firefighter", "firefighters", "소방관", "명", J),
    each("engineer", "engineers", "기술자", "명", J),
    each("journalist", "journalists", "기자", "명", J),
    each("pilot", "pilots", "조종사", "명", J),
    each("musician", "musicians", "음악가", "명", J),
    each("merchant", "merchants", "상인", "명", J),
    each("athlete", "athletes", "운동선수", "명", J),
    each("king", "kings", "왕", "명", P | ELDER),
    each("prince", "princes", "왕자", "명", P),
    each("princess", "princesses", "공주", "명", P),
    each("child", "children", "아이", "명", P | CHILD),
    each("boy", "boys", "소년", "명", P | CHILD),
    each("girl", "girls", "소녀", "명", P | CHILD),
    each("man", "men", "남자", "명", P),
    each("woman", "women", "여자", "명", P),
    each("friend", "friends", "친구", "명", P | KIN),
    each("neighbor", "neighbors", "이웃", "명", P),
    each("customer", "customers", "손님", "명", P | ELDER),
    each("tourist", "tourists", "관광객", "명", P),
    each("mother", "mothers", "어머니", "명", P | ELDER | SHARED),
    each("father", "fathers", "아버지", "명", P | ELDER | SHARED),
    each("grandmother", "grandmothers", "할머니", "명", P | ELDER | SHARED),
    each("grandfather", "grandfathers", "할아버지", "명", P | ELDER | SHARED),
    each("uncle", "uncles", "삼촌", "명", P | ELDER | SHARED),
    each("son", "sons", "아들", "명", P | SHARED),
    each("daughter", "daughters", "딸", "명", P | SHARED),
    each("cousin", "cousins", "사촌", "명", P | KIN),
];

/// Names of people.
pub(in super::super) const NAMES: &[(&str, &str)] = &[
    ("Minsu", "민수"),
    ("Yuna", "유나"),
    ("Jihun", "지훈"),
    ("Sujin", "수진"),
    ("Minji", "민지"),
    ("Junho", "준호"),
    ("Seoyeon", "서연"),
    ("Dohyun", "도현"),
    ("Tom", "톰"),
    ("Anna", "안나"),
    ("Paul", "폴"),
    ("Mary", "메리"),
];

/// Animals.
#[rustfmt::skip]
pub(in super::super) const ANIMALS: &[Noun] = &[
    each("cat", "cats", "고양이", "마리", ANIMAL | PET),
    each("dog", "dogs", "개", "마리", ANIMAL | PET),
    each("puppy", "puppies", "강아지", "마리", ANIMAL | PET),
    each("rabbit", "rabbits", "토끼", "마리", ANIMAL | PET),
    each("bird", "birds", "새", "마리", ANIMAL | BIRD | PET),
    each("parrot", "parrots", "앵무새", "마리", ANIMAL | BIRD | PET),
    each("owl", "owls", "부엉이", "마리", ANIMAL | BIRD),
    each("eagle", "eagles", "독수리", "마리", ANIMAL | BIRD),
    each("duck", "ducks", "오리", "마리", ANIMAL | SWIMMER | FARM),
    each("penguin", "penguins", "펭귄", "마리", ANIMAL | SWIMMER),
    each("turtle", "turtles", "거북이", "마리", ANIMAL | SWIMMER | PET),
    each("frog", "frogs", "개구리", "마리", ANIMAL | SWIMMER),
    each("horse", "horses", "말", "마리", ANIMAL | FARM),
    each("cow", "cows", "소", "마리", ANIMAL | FARM),
    each("pig", "pigs", "돼지", "마리", ANIMAL | FARM),
    each("goat", "goats", "염소", "마리", ANIMAL | FARM),
    each("chicken", "chickens", "닭", "마리", ANIMAL | FARM),
    each("bear", "bears", "곰", "마리", ANIMAL | WILD),
    each("tiger", "tigers", "호랑이", "마리", ANIMAL | WILD),
    each("lion", "lions", "사자", "마리", ANIMAL | WILD),
    each("wolf", "wolves", "늑대", "마리", ANIMAL | WILD),
    each("fox", "foxes", "여우", "마리", ANIMAL),
    each("monkey", "monkeys", "원숭이", "마리", ANIMAL),
    each("elephant", "elephants", "코끼리", "마리", ANIMAL),
    each("squirrel", "squirrels", "다람쥐", "마리", ANIMAL),
    each("mouse", "mice", "쥐", "마리", ANIMAL),
];
