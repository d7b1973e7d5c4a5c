"""What ONNX Runtime has and hetnn does not read, and why."""

from hetnn.importers.onnx.rules.declare import refuse

refuse(
    "its images lie as one processor's vectors do; save the model at ORT_ENABLE_EXTENDED, not at ORT_ENABLE_ALL",
    *("AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"),
    *("ReorderInput", "ReorderOutput", "Upsample"),
    domain="com.microsoft.nchwc",
)
refuse(
    "ONNX Runtime has it on accelerators only; optimize the model for its CPU provider",
    *("BitmaskBiasDropout", "BitmaskDropout", "ConvStateReplay", "DecoderAttention", "DecoderMaskedSelfAttention"),
    *("DequantizeBFP", "DequantizeWithOrder", "DynamicSparseAttention", "EPContext", "GatedDeltaNetStateReplay"),
    *("GatedRelativePositionBias", "GemmFloat8", "GemmaRotaryEmbedding", "HyperConnectionLowRankMix", "Irfft"),
    *("LongformerAttention", "Mamba2Verify", "MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight"),
    *("MatMulNBitsMlp", "MatMulNBitsQLoRA", "MatMulNBitsQkv", "MatMulPacked", "MoEPacked", "PackedAttention"),
    *("PackedMultiHeadAttention", "PackedSparseAttentionIndexer", "PackedSparseAttentionIndexerMerge"),
    *("PagedAttention", "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization"),
    *("QOrderedLongformerAttention", "QOrderedMatMul", "QuantizeBFP", "QuantizeWithOrder", "RMSNormRotary"),
    *("RelativePositionBias", "RemovePadding", "RestorePadding", "Rfft", "RouterGateUpProj", "Snpe"),
    *("SparseAttentionIndexer", "SparsePagedAttention", "SpeculativePrefixCommit"),
)
