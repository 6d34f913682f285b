-- reads: computations, catalog
-- Which computations of an account make a page that is sorted by start or duration: no task group has to be looked at
-- for that. Narrowed and sorted as `computations`.
SELECT cluster, boot, no
FROM (
    SELECT
        *,
        CASE WHEN stop_at IS NOT NULL THEN greatest(epoch_ms(stop_at) - epoch_ms(start_at), 0) END AS took_ms
    FROM computations
)
WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
  AND ($clusters::VARCHAR[] IS NULL OR cluster IN (SELECT unnest($clusters::VARCHAR[])))
  AND ($since::TIMESTAMPTZ IS NULL OR coalesce(stop_at, "at") >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR start_at <= $until)
  AND ($code::VARCHAR IS NULL OR fingerprint(code) = $code)
  AND ($user::VARCHAR IS NULL OR cluster IN (SELECT cluster FROM catalog WHERE "user" = $user))
ORDER BY
    CASE coalesce($sort::VARCHAR, '-start')
        WHEN 'start' THEN epoch_ms(start_at)
        WHEN '-start' THEN -epoch_ms(start_at)
        WHEN 'duration' THEN took_ms
        ELSE -took_ms
    END NULLS LAST,
    start_at DESC,
    boot DESC,
    no DESC
LIMIT $limit OFFSET $offset
