"""``mindspore.train``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.amp import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    build_train_network,
)
from dumpsim.frontends.mindspore.nn.metrics import (
    MAE,
    MSE,
    Accuracy,
    Loss,
    Metric,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from dumpsim.frontends.mindspore.train.callback import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)
from dumpsim.frontends.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset, data_sink
from dumpsim.frontends.mindspore.train.model import Model
from dumpsim.frontends.mindspore.train.printfile import parse_print
from dumpsim.frontends.mindspore.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = [
    "MAE",
    "MSE",
    "Accuracy",
    "Callback",
    "CheckpointConfig",
    "DatasetHelper",
    "DynamicLossScaleManager",
    "EarlyStopping",
    "FixedLossScaleManager",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "Loss",
    "LossMonitor",
    "LossScaleManager",
    "Metric",
    "Model",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "build_train_network",
    "connect_network_with_dataset",
    "data_sink",
    "load_checkpoint",
    "load_param_into_net",
    "parse_print",
    "save_checkpoint",
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train", name)
