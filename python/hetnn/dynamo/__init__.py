"""hetnn as a backend of torch.compile: `torch.compile(model, backend="hetnn", options={"target": "cpu+relu-only"})`."""
