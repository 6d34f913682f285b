-- reads: events
-- One cluster's events, latest first; `topic` narrows them.
SELECT *
FROM events
WHERE cluster = $cluster AND ($topic::VARCHAR IS NULL OR topic = $topic)
ORDER BY logged_at DESC, boot DESC, no DESC
LIMIT $limit OFFSET $offset
