"""Weights on a rank: bytes by component for a layout, and the parameters of a whole model."""

from generator.weights.footprint import WeightFootprint, WeightItem, weight_footprint
from generator.weights.parameters import ParameterCounts, parameter_counts
from generator.weights.passes import PassedWeights, PassWeights, decoder_pass, draft_pass
from generator.weights.shards import WeightLayout
from generator.weights.tensors import Component

__all__ = [
    "Component",
    "ParameterCounts",
    "PassWeights",
    "PassedWeights",
    "WeightFootprint",
    "WeightItem",
    "WeightLayout",
    "decoder_pass",
    "draft_pass",
    "parameter_counts",
    "weight_footprint",
]
