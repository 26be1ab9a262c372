//! How kinds of attention are named, and what is said of those that do not fit.

use foveal_models::Checkpoint;
use foveal_models::layer::{Family, Random};
use foveal_models::model::{Gpt2, Gpt2Config, Llama, LlamaConfig, Model, Vit, VitConfig};

use crate::gpt2;

#[test]
fn are_read_as_they_are_written() {
    for family in Family::all() {
        assert_eq!(family.to_string().parse::<Family>().unwrap(), family);
        assert_eq!(family.name().parse::<Family>().unwrap(), family);
    }
    let family: Family = "bigbird:block=4, random=2,seed=18446744073709551615".parse().unwrap();
    assert_eq!(family, Family::BigBird { block: 4, window: 3, globals: 1, random: 2, seed: u64::MAX });
}

#[test]
fn that_mean_nothing_are_refused() {
    for bad in [
        "",
        "soft",
        "longformer:window",
        "longformer:window=x",
        "longformer:stride=3",
        "linear:window=3",
        "longformer:window=-1",
        "longformer:window=99999999999",
        "favor:features=1000000000",
        "Softmax",
        ":",
    ] {
        let error = bad.parse::<Family>().unwrap_err().to_string();
        assert!(error.contains("there is no attention") && error.contains("longformer:window=32"), "{bad}: {error}");
    }
}

fn of_gpt2(family: &str) -> String {
    let sizes = Gpt2Config { attention: family.parse().unwrap(), ..Gpt2Config::nano() };
    Gpt2::new(&sizes, &mut Random::new(1)).unwrap_err().to_string()
}

#[test]
fn that_do_not_fit_say_what_would() {
    let fourier = of_gpt2("fourier");
    assert_eq!(fourier, "fourier cannot be used here; its place is where all tokens may see each other: an encoder");
    assert!(of_gpt2("swin").contains("an image in patches, without a class token"));
    assert!(of_gpt2("longformer:dilation=0").contains("1 or more"));
    assert!(of_gpt2("bigbird:window=2").contains("odd"));
    assert!(of_gpt2("bigbird:block=32").contains("take smaller blocks"));
    assert!(of_gpt2("favor:features=0").contains("features"));
    assert!(of_gpt2("strided:stride=0").contains("stride"));
    let digits = VitConfig { attention: Family::Swin { window: 3 }, class_token: false, ..VitConfig::digits() };
    assert!(Vit::new(&digits, &mut Random::new(1)).unwrap_err().to_string().contains('7'));
    let with_token = VitConfig { attention: Family::Swin { window: 7 }, ..VitConfig::digits() };
    assert!(Vit::new(&with_token, &mut Random::new(1)).is_err());
    // As many blocks as a configuration likes would be as much memory as it likes.
    let family = "bigbird:block=1".parse().unwrap();
    let endless = LlamaConfig { context: 1 << 28, attention: family, ..LlamaConfig::nano() };
    assert!(Llama::new(&endless, &mut Random::new(1)).unwrap_err().to_string().contains("4096 or more"));
}

#[test]
fn in_a_damaged_configuration_are_named() {
    let folder = tempfile::tempdir().unwrap();
    gpt2(Family::Linear).save(folder.path(), foveal_models::Dtype::F32).unwrap();
    let path = folder.path().join("config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    assert!(config.contains("\"attention_family\": \"linear\""), "{config}");
    std::fs::write(&path, config.replace("\"linear\"", "\"liner\"")).unwrap();
    let error = Model::load(&Checkpoint::open(folder.path()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("attention_family") && error.contains("liner"), "{error}");
}
