"""Face detection with MTCNN: three small networks in a cascade, compiled by hetnn."""
