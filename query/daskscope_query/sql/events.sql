-- reads: events
-- One cluster's events, latest first.
SELECT *
FROM events
WHERE cluster = $cluster
ORDER BY logged_at DESC, boot DESC, no DESC
LIMIT $limit OFFSET $offset
