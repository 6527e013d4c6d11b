"""Functions of torch that 1.0.17 hooks and has no MindSpore name for: its own mapping leaves them as they are."""

__all__ = ["UNLISTED"]

# [troubleshooter 1.0.17: hooked names without an entry in its table of names, asked of the package]
UNLISTED = frozenset(
    """
    _adaptive_avg_pool2d _add_relu _add_relu_ _aminmax _batch_norm_impl_index _convolution abs_ acos_ acosh_
    adaptive_avg_pool1d adaptive_max_pool1d addmv_ affine_grid_generator align_tensors alpha_dropout alpha_dropout_
    arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ avg_pool1d
    batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats bilinear
    binary_cross_entropy_with_logits binomial bitwise_not broadcast_tensors cartesian_prod ceil_ celu celu_
    chain_matmul channel_shuffle cholesky_inverse choose_qparams_optimized clamp_ clamp_max clamp_max_ clamp_min
    clamp_min_ clip_ clone constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d convolution cos_ cosh_ cosine_embedding_loss cosine_similarity ctc_loss deg2rad_ det dropout
    dropout_ dsmm eig embedding embedding_bag embedding_renorm_ equal erf_ erfc_ exp2_ exp_ expm1_
    feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fill_ fix fix_ floor_ fmin frac_
    frobenius_norm gcd_ grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell hardshrink
    hinge_embedding_loss hsmm hspmm index_add index_copy index_fill index_put index_put_ instance_norm istft kl_div
    kthvalue layer_norm lcm_ ldexp_ lgamma log10_ log1p_ log2_ log_ log_softmax logit_ lstm lstm_cell lstsq
    margin_ranking_loss masked_fill masked_scatter matrix_exp matrix_power matrix_rank max_pool1d
    max_pool1d_with_indices max_pool2d max_pool3d mode nan_to_num_ nanmedian narrow_copy native_batch_norm
    native_group_norm native_layer_norm native_norm neg_ negative_ norm norm_except_dim nuclear_norm
    pairwise_distance pdist pinverse pixel_shuffle pixel_unshuffle poisson_nll_loss prelu promote_types rad2deg_
    reciprocal_ relu relu_ resize_as_ round_ rrelu rrelu_ rsqrt_ rsub saddmm scalar_tensor select selu selu_
    sigmoid_ sin_ sinc_ sinh_ smm softmax solve sparse_coo_tensor split_with_sizes spmm sqrt_ square_ sspaddmm
    symeig take tan_ tanh_ tensordot threshold threshold_ triangular_solve triplet_margin_loss triu trunc_
    unique_dim unsafe_chunk unsafe_split unsafe_split_with_sizes vdot xlogy_
    """.split()  # noqa: SIM905
)
