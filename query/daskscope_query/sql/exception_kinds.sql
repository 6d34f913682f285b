-- reads: exceptions
-- One cluster's exceptions, alike ones together, most frequent first.
SELECT type, text, sum(count)::BIGINT AS count
FROM exceptions
WHERE cluster = $cluster
GROUP BY type, text
ORDER BY count DESC, type, text
