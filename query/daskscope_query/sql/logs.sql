-- reads: logs
-- One cluster's log lines, latest first. `level` is the least one, `text` a part of the line whatever its case.
SELECT *
FROM logs
WHERE cluster = $cluster
  AND ($level::INTEGER IS NULL OR level >= $level)
  AND ($role::VARCHAR IS NULL OR role = $role)
  AND ($worker::VARCHAR IS NULL OR worker = $worker)
  AND ($text::VARCHAR IS NULL OR contains(lower(text), lower($text)))
  AND ($since::TIMESTAMPTZ IS NULL OR logged_at >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR logged_at <= $until)
ORDER BY logged_at DESC, boot DESC, no DESC
LIMIT $limit OFFSET $offset
