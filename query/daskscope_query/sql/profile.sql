-- reads: profiles
-- What one cluster's workers were doing: each stack once, heaviest first; `prefix` narrows them, `by_prefix` keeps
-- those of two task prefixes apart. A stack without frames is what a worker or the plugin left out.
SELECT
    CASE WHEN $by_prefix::BOOLEAN THEN prefix END AS prefix,
    stack,
    sum(count)::BIGINT AS count,
    sum(count * sample_us)::BIGINT AS sampled_us
FROM profiles
WHERE cluster = $cluster AND len(stack) > 0 AND ($prefix::VARCHAR IS NULL OR prefix = $prefix)
GROUP BY 1, stack
ORDER BY sampled_us DESC, 1, stack
LIMIT $limit OFFSET $offset
