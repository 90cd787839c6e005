from . import errors as errors
from .calibrators import AffineLogit as AffineLogit
from .calibrators import BetaCalibration as BetaCalibration
from .calibrators import HistogramBinning as HistogramBinning
from .calibrators import IsotonicCalibration as IsotonicCalibration
from .calibrators import OneVsRest as OneVsRest
from .calibrators import PlattScaling as PlattScaling
from .calibrators import QuadraticLogit as QuadraticLogit
from .calibrators import SplineCalibration as SplineCalibration
from .calibrators import TemperatureScaling as TemperatureScaling
from .calibrators import VennAbers as VennAbers
from .data import ScoreTable as ScoreTable
from .maps import load_map as load_map
from .metrics import average_precision as average_precision
from .metrics import brier_score as brier_score
from .metrics import calibration_slope_intercept as calibration_slope_intercept
from .metrics import expected_calibration_error as expected_calibration_error
from .metrics import log_loss as log_loss
from .metrics import reliability_curve as reliability_curve
from .metrics import roc_auc as roc_auc
from .metrics import roc_curve as roc_curve
from .metrics import score_decomposition as score_decomposition

__version__: str
