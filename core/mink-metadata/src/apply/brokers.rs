//! Configurations of brokers that are set while they run.
//!
//! Lives on: anywhere (pure).
//! Invariants: of two changes that saw the same values the second changes nothing; a scope's names and values are bounded, and scopes are
//! those of nodes that have registered.
use super::Judged;
use crate::state::State;
use crate::{
    Answer, BROKER_CONFIG_NAME_BYTES_MAX, BROKER_CONFIG_VALUE_BYTES_MAX, BROKER_CONFIGS_MAX,
    BrokerConfigChange, ConfigScope, FEATURE_LEVEL_CONFIGS, Invalid, LimitKind, Refusal,
};

/// Refuses a configuration without a name, or a long one.
pub(super) fn check_config(name: &str, value: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::Invalid(Invalid::EmptyName));
    }
    at_most(name.len(), LimitKind::TextBytes, BROKER_CONFIG_NAME_BYTES_MAX)?;
    at_most(value.len(), LimitKind::TextBytes, BROKER_CONFIG_VALUE_BYTES_MAX)
}

pub(super) fn at_most(length: usize, limit: LimitKind, max: usize) -> Result<(), Refusal> {
    if length > max { Err(Refusal::Limit { limit, max: max as u64 }) } else { Ok(()) }
}

impl State {
    pub(super) fn alter_broker_configs(&mut self, change: &BrokerConfigChange) -> Judged {
        if self.feature_level < FEATURE_LEVEL_CONFIGS {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        let BrokerConfigChange { scope, seen, configs } = change;
        if let ConfigScope::Node(node) = scope
            && self.incarnations_of(*node).next().is_none()
        {
            return Err(Refusal::Invalid(Invalid::UnknownNode));
        }
        if self.broker_configs(*scope) != seen {
            return Err(Refusal::BrokerConfigsChanged);
        }
        at_most(configs.len(), LimitKind::BrokerConfigs, BROKER_CONFIGS_MAX)?;
        configs.iter().try_for_each(|(name, value)| check_config(name, value))?;
        if configs.is_empty() {
            self.broker_configs.remove(scope);
        } else {
            self.broker_configs.insert(*scope, configs.clone());
        }
        Ok(Answer::Done)
    }
}
