"""Reading and building ONNX nodes, shared by the kinds."""
