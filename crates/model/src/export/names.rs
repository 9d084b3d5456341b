//! Hugging Face's names for our tensors and settings. They live here alone.

use crate::config::{Embeddings, ModelConfig, RewardHead};
use serde::{Deserialize, Serialize};

/// The name that `LlamaForCausalLM` has for one of our tensors; nothing for the reward head, which it
/// does not have.
pub(super) fn tensor_name(ours: &str) -> Option<String> {
    let fixed = match ours {
        "embedding" => Some("model.embed_tokens.weight"),
        "final_norm" => Some("model.norm.weight"),
        "head" => Some("lm_head.weight"),
        _ => None,
    };
    if let Some(name) = fixed {
        return Some(name.to_owned());
    }
    let (layer, part) = ours.strip_prefix("blocks.")?.split_once('.')?;
    let part = match part {
        "attention.norm" => "input_layernorm",
        "attention.query" => "self_attn.q_proj",
        "attention.key" => "self_attn.k_proj",
        "attention.value" => "self_attn.v_proj",
        "attention.output" => "self_attn.o_proj",
        "feed_forward.norm" => "post_attention_layernorm",
        "feed_forward.gate" => "mlp.gate_proj",
        "feed_forward.up" => "mlp.up_proj",
        "feed_forward.down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}.weight"))
}

/// `config.json`, as far as we write and read it. Unknown entries are ignored: other programs write
/// many that do not change the mathematics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LlamaConfig {
    pub architectures: Vec<String>,
    pub model_type: String,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: Option<usize>,
    pub head_dim: Option<usize>,
    pub vocab_size: usize,
    pub max_position_embeddings: usize,
    pub rms_norm_eps: f64,
    pub rope_theta: Option<f64>,
    pub rope_scaling: Option<serde_json::Value>,
    pub rope_parameters: Option<RopeParameters>,
    pub hidden_act: String,
    #[serde(default)]
    pub attention_bias: bool,
    #[serde(default)]
    pub mlp_bias: bool,
    #[serde(default)]
    pub attention_dropout: f64,
    #[serde(default)]
    pub tie_word_embeddings: bool,
    pub bos_token_id: Option<u32>,
    pub eos_token_id: Option<serde_json::Value>,
    pub torch_dtype: Option<String>,
    pub use_cache: Option<bool>,
}

/// Rotary settings as version 5 of `transformers` writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RopeParameters {
    pub rope_type: String,
    pub rope_theta: f64,
}

impl LlamaConfig {
    /// Our configuration in their words.
    pub fn from_ours(config: &ModelConfig, begin_of_text: u32, stop: &[u32]) -> Self {
        let rope_theta = widen(config.rope_theta);
        Self {
            architectures: vec!["LlamaForCausalLM".to_owned()],
            model_type: "llama".to_owned(),
            hidden_size: config.d_model,
            intermediate_size: config.d_ff,
            num_hidden_layers: config.num_layers,
            num_attention_heads: config.num_heads,
            num_key_value_heads: Some(config.num_kv_heads),
            head_dim: Some(config.head_dim),
            vocab_size: config.vocab_size,
            max_position_embeddings: config.max_seq_len,
            rms_norm_eps: widen(config.norm_eps),
            rope_theta: Some(rope_theta),
            rope_scaling: None,
            // Version 5 reads this entry, older ones the two above.
            rope_parameters: Some(RopeParameters { rope_type: "default".to_owned(), rope_theta }),
            hidden_act: "silu".to_owned(),
            attention_bias: false,
            mlp_bias: false,
            attention_dropout: 0.0,
            tie_word_embeddings: config.embeddings == Embeddings::Tied,
            bos_token_id: Some(begin_of_text),
            eos_token_id: Some(serde_json::json!(stop)),
            torch_dtype: Some("float32".to_owned()),
            use_cache: Some(true),
        }
    }

    /// Their configuration in ours, or the name, value and expected value of what we do not have.
    pub fn to_ours(&self) -> Result<ModelConfig, (&'static str, String, &'static str)> {
        let is_llama = self.architectures == ["LlamaForCausalLM"];
        let rope_type = self.rope_parameters.as_ref().map_or("default", |rope| &rope.rope_type);
        let scaled = self.rope_scaling.as_ref().filter(|scaling| !scaling.is_null());
        let checks = [
            ("architectures", is_llama, format!("{:?}", self.architectures), "LlamaForCausalLM"),
            ("hidden_act", self.hidden_act == "silu", self.hidden_act.clone(), "silu"),
            ("attention_bias", !self.attention_bias, "true".to_owned(), "false"),
            ("mlp_bias", !self.mlp_bias, "true".to_owned(), "false"),
            ("rope_type", rope_type == "default", rope_type.to_owned(), "default"),
            ("rope_scaling", scaled.is_none(), format!("{scaled:?}"), "null"),
        ];
        for (name, holds, found, expected) in checks {
            if !holds {
                return Err((name, found, expected));
            }
        }
        let heads = self.num_attention_heads;
        let rope = self.rope_parameters.as_ref().map(|rope| rope.rope_theta);
        Ok(ModelConfig {
            num_layers: self.num_hidden_layers,
            num_heads: heads,
            num_kv_heads: self.num_key_value_heads.unwrap_or(heads),
            head_dim: self.head_dim.unwrap_or(self.hidden_size / heads.max(1)),
            d_model: self.hidden_size,
            d_ff: self.intermediate_size,
            vocab_size: self.vocab_size,
            max_seq_len: self.max_position_embeddings,
            rope_theta: rope.or(self.rope_theta).unwrap_or(10_000.0) as f32,
            norm_eps: self.rms_norm_eps as f32,
            embeddings: if self.tie_word_embeddings {
                Embeddings::Tied
            } else {
                Embeddings::Untied
            },
            reward_head: RewardHead::Absent,
        })
    }
}

/// The double that is written with the same digits: 1e-5, not 9.99999974e-6.
fn widen(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}
