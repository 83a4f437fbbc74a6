"""The names of the roles of a log's columns, and of the columns that have them by default."""

COLUMN_ROLES = ("arm", "reward", "propensity", "time", "reward_time", "batch")
RENAME = (  # ends an error about a column
    'A role can be given, as time="decided" (a command: --column time=decided); keep=["time"] '
    "(--column context=time) makes a context of a column."
)
DEFAULTS = {  # exact names; the first that a table has is its column of the role
    "arm": ("arm", "action", "item_id"),
    "reward": ("reward", "click"),
    "propensity": ("propensity", "pscore"),
    "time": ("time", "timestamp"),
    "reward_time": ("reward_time",),
    "batch": ("batch",),
}
OF_EACH_ARM = ("probability_", "p_")  # with an arm's name: the column of its probability
PROBABILITY_PREFIX = "probability:"  # with an arm's name: its role in a command
HISTORY = ("arm", "reward", "propensity", "weight")  # the last columns of `history.to_frame()`
MARK = "features"  # the attribute of such a table that names its other columns
CONTEXT = " (context)"  # ends the name of a feature that is called as one of these columns
# some of those of `DecisionLog.frame()`
DECISION_LOG_COLUMNS = {"decision_id", "decided_at", "probabilities", "status"}
