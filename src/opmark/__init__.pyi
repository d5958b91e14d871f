from opmark.core.errors import OpMarkError as OpMarkError
from opmark.interface import PlacedProblem as PlacedProblem
from opmark.interface import PredictedKernel as PredictedKernel
from opmark.interface import Prediction as Prediction
from opmark.interface import SimulatedSolution as SimulatedSolution
from opmark.interface import load_problem as load_problem
from opmark.interface import load_release as load_release
from opmark.interface import place as place
from opmark.interface import predict as predict
from opmark.interface import simulate as simulate
from opmark.leaderboards.problem.placement import Solution as Solution
from opmark.leaderboards.problem.problem import Problem as Problem

__version__: str
