-- reads: profiles
-- How much one cluster's profile holds, and how much of rare stacks was left out of it (stacks without frames);
-- `since` and `until` as in the profile.
WITH mine AS (
    SELECT
        len(stack) = 0 AS is_cut,
        len(stack) > 0 AND ($prefix::VARCHAR IS NULL OR prefix = $prefix) AS is_wanted,
        count,
        capped(count::HUGEINT * sample_us) AS us
    FROM profiles
    WHERE cluster = $cluster
      AND ($since::TIMESTAMPTZ IS NULL OR to_at > $since)
      AND ($until::TIMESTAMPTZ IS NULL OR from_at < $until)
)
SELECT
    capped(coalesce(sum(count) FILTER (is_wanted), 0)) AS count,
    capped(coalesce(sum(us) FILTER (is_wanted), 0)) AS sampled_us,
    capped(coalesce(sum(count) FILTER (is_cut), 0)) AS cut,
    capped(coalesce(sum(us) FILTER (is_cut), 0)) AS cut_us
FROM mine
