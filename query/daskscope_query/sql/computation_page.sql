-- reads: computations, catalog
-- Which computations of an account make a page that is sorted by start: no task group has to be looked at for that.
-- Narrowed and sorted as `computations`.
SELECT cluster, boot, no
FROM computations
WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
  AND ($clusters::VARCHAR[] IS NULL OR cluster IN (SELECT unnest($clusters::VARCHAR[])))
  AND ($since::TIMESTAMPTZ IS NULL OR coalesce(stop_at, "at") >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR start_at <= $until)
  AND ($code::VARCHAR IS NULL OR fingerprint(code) = $code)
  AND ($user::VARCHAR IS NULL OR cluster IN (SELECT cluster FROM catalog WHERE "user" = $user))
ORDER BY
    CASE $sort::VARCHAR WHEN 'start' THEN epoch_ms(start_at) ELSE -epoch_ms(start_at) END,
    start_at DESC,
    boot DESC,
    no DESC
LIMIT $limit OFFSET $offset
