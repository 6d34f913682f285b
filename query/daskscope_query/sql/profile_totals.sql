-- reads: profiles
-- How much one cluster's profile holds, and how much of rare stacks was left out of it (stacks without frames).
SELECT
    coalesce(sum(count) FILTER (len(stack) > 0 AND ($prefix::VARCHAR IS NULL OR prefix = $prefix)), 0)::BIGINT AS count,
    coalesce(sum(count * sample_us) FILTER (len(stack) > 0 AND ($prefix::VARCHAR IS NULL OR prefix = $prefix)), 0)::BIGINT
        AS sampled_us,
    coalesce(sum(count) FILTER (len(stack) = 0), 0)::BIGINT AS cut,
    coalesce(sum(count * sample_us) FILTER (len(stack) = 0), 0)::BIGINT AS cut_us
FROM profiles
WHERE cluster = $cluster
