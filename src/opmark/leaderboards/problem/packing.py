"""Where each array of a problem lies in the buffer that compiled code reads."""

# The order of the arrays in `ProblemArrays.packed`. Append only: a compiled cache does not see other files change.
FIELDS = (
    "sizes",
    "exec_ns",
    "workspace_bytes",
    "input_offsets",
    "input_tensors",
    "output_offsets",
    "output_tensors",
    "tensor_bytes",
    "tensor_producer",
    "tensor_home",
    "tensor_output",
    "tensor_size_class",
    "consumer_offsets",
    "consumer_units",
    "boundary_ns",
    "device_type",
    "device_slots",
    "device_dispatch_ns",
    "device_blocking",
    "link_source",
    "link_destination",
    "link_port",
    "route_offsets",
    "route_links",
    "hop_ns",
    "weight_offsets",
    "weight_ids",
    "weight_bytes",
    "link_second_port",
    "unit_class",
    "interference",
    "release_ns",
    "request_units",
    "request_tensors",
    "request_urgency",
)

EXEC_NS = FIELDS.index("exec_ns")
WORKSPACE = FIELDS.index("workspace_bytes")
INPUT_OFFSETS = FIELDS.index("input_offsets")
INPUT_TENSORS = FIELDS.index("input_tensors")
OUTPUT_OFFSETS = FIELDS.index("output_offsets")
OUTPUT_TENSORS = FIELDS.index("output_tensors")
TENSOR_BYTES = FIELDS.index("tensor_bytes")
TENSOR_PRODUCER = FIELDS.index("tensor_producer")
TENSOR_HOME = FIELDS.index("tensor_home")
TENSOR_OUTPUT = FIELDS.index("tensor_output")
TENSOR_SIZE_CLASS = FIELDS.index("tensor_size_class")
CONSUMER_OFFSETS = FIELDS.index("consumer_offsets")
CONSUMER_UNITS = FIELDS.index("consumer_units")
BOUNDARY = FIELDS.index("boundary_ns")
DEVICE_TYPE = FIELDS.index("device_type")
DEVICE_SLOTS = FIELDS.index("device_slots")
DISPATCH = FIELDS.index("device_dispatch_ns")
BLOCKING = FIELDS.index("device_blocking")
LINK_SOURCE = FIELDS.index("link_source")
LINK_DESTINATION = FIELDS.index("link_destination")
LINK_PORT = FIELDS.index("link_port")
ROUTE_OFFSETS = FIELDS.index("route_offsets")
ROUTE_LINKS = FIELDS.index("route_links")
HOP_NS = FIELDS.index("hop_ns")
WEIGHT_OFFSETS = FIELDS.index("weight_offsets")
WEIGHT_IDS = FIELDS.index("weight_ids")
WEIGHT_BYTES = FIELDS.index("weight_bytes")
LINK_SECOND_PORT = FIELDS.index("link_second_port")
UNIT_CLASS = FIELDS.index("unit_class")
INTERFERENCE = FIELDS.index("interference")
RELEASE_NS = FIELDS.index("release_ns")
REQUEST_UNITS = FIELDS.index("request_units")
REQUEST_TENSORS = FIELDS.index("request_tensors")
REQUEST_URGENCY = FIELDS.index("request_urgency")
