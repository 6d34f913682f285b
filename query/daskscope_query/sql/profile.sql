-- reads: profiles
-- What one cluster's workers were doing: each stack once, heaviest first; `prefix` narrows them, `by_prefix` keeps
-- those of two task prefixes apart, `since` and `until` take the intervals that have a part between them. A stack
-- without frames is what a worker or the plugin left out.
SELECT
    CASE WHEN $by_prefix::BOOLEAN THEN prefix END AS prefix,
    stack,
    capped(sum(count)) AS count,
    capped(sum(capped(count::HUGEINT * sample_us))) AS sampled_us
FROM profiles
WHERE cluster = $cluster
  AND len(stack) > 0
  AND ($prefix::VARCHAR IS NULL OR prefix = $prefix)
  AND ($since::TIMESTAMPTZ IS NULL OR to_at > $since)
  AND ($until::TIMESTAMPTZ IS NULL OR from_at < $until)
GROUP BY 1, stack
ORDER BY sampled_us DESC, 1, stack
LIMIT $limit OFFSET $offset
