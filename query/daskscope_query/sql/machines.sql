-- reads: members
-- What one cluster's workers ran on, most of a kind first; `boot`, `since` and `until` take those that were there then.
-- `present_ms`: how long they were, all together, between these two; null unless both are given.
SELECT
    instance_type,
    region,
    lifecycle,
    cores,
    memory_bytes,
    gpus,
    n_threads,
    memory_limit_bytes,
    count(*) AS n,
    sum(greatest(
        epoch_ms(least(coalesce(left_at, $until::TIMESTAMPTZ), $until::TIMESTAMPTZ))
        - epoch_ms(greatest(joined_at, $since::TIMESTAMPTZ)), 0
    )::DOUBLE) FILTER ($since::TIMESTAMPTZ IS NOT NULL AND $until::TIMESTAMPTZ IS NOT NULL) AS present_ms
FROM members
WHERE cluster = $cluster
  AND role = 'worker'
  AND ($boot::VARCHAR IS NULL OR boot = $boot)
  AND ($since::TIMESTAMPTZ IS NULL OR left_at IS NULL OR left_at >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR joined_at <= $until)
GROUP BY ALL
ORDER BY n DESC, instance_type, cores, memory_bytes, n_threads, memory_limit_bytes, region, lifecycle, gpus
