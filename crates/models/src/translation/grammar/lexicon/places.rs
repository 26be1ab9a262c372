//! Places and cities.

use super::kind::*;
use super::{Kinds, Noun, many};

const B: Kinds = BUILDING;

/// Places.
#[rustfmt::skip]
pub(in super::super) const PLACES: &[Noun] = &[
    many("school", "schools", "학교", B | STUDY | WORK),
    many("university", "universities", "대학교", B | STUDY | WORK),
    many("library", "libraries", "도서관", B | STUDY),
    many("classroom", "classrooms", "교실", STUDY | ROOM),
    many("house", "houses", "집", B | HOME | ROOM | SHARED | LIVING),
    many("room", "rooms", "방", HOME | ROOM),
    many("kitchen", "kitchens", "부엌", EATERY | ROOM),
    many("garden", "gardens", "정원", OUTDOORS | ROOM),
    many("park", "parks", "공원", OUTDOORS | FIELD),
    many("playground", "playgrounds", "놀이터", OUTDOORS | FIELD),
    many("beach", "beaches", "해변", OUTDOORS | FIELD),
    many("forest", "forests", "숲", OUTDOORS),
    many("mountain", "mountains", "산", OUTDOORS),
    many("island", "islands", "섬", OUTDOORS | LIVING),
    many("village", "villages", "마을", OUTDOORS | LIVING),
    many("farm", "farms", "농장", OUTDOORS | WORK | LIVING),
    many("zoo", "zoos", "동물원", OUTDOORS),
    many("river", "rivers", "강", WATERS),
    many("lake", "lakes", "호수", WATERS),
    many("sea", "seas", "바다", WATERS),
    many("pool", "pools", "수영장", WATERS),
    many("hospital", "hospitals", "병원", B | WORK),
    many("bank", "banks", "은행", B | WORK),
    many("office", "offices", "사무실", WORK | ROOM),
    many("factory", "factories", "공장", B | WORK),
    many("hotel", "hotels", "호텔", B | WORK),
    many("market", "markets", "시장", SHOP | WORK),
    many("store", "stores", "가게", SHOP | WORK),
    many("bookstore", "bookstores", "서점", SHOP | WORK),
    many("bakery", "bakeries", "빵집", SHOP | WORK),
    many("restaurant", "restaurants", "식당", B | EATERY | WORK),
    many("cafe", "cafes", "카페", EATERY | WORK),
    many("theater", "theaters", "극장", B | CULTURE | WORK),
    many("museum", "museums", "박물관", B | CULTURE | WORK),
    many("station", "stations", "역", STOP | WORK),
    many("airport", "airports", "공항", STOP | WORK),
];

/// What English says for being there; Korean has one word for all.
pub(in super::super) fn preposition(place: &str) -> &'static str {
    match place {
        "beach" | "mountain" | "island" | "farm" => "on",
        "school" | "university" | "playground" | "zoo" | "bank" | "market" | "store" | "bookstore" | "bakery"
        | "restaurant" | "cafe" | "theater" | "museum" | "station" | "airport" => "at",
        _ => "in",
    }
}

/// Cities and countries.
pub(in super::super) const CITIES: &[(&str, &str)] = &[
    ("Seoul", "서울"),
    ("Busan", "부산"),
    ("Jeju", "제주"),
    ("London", "런던"),
    ("Paris", "파리"),
    ("Tokyo", "도쿄"),
    ("Korea", "한국"),
    ("Japan", "일본"),
];
