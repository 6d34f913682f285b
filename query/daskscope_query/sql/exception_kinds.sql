-- reads: exceptions
-- One cluster's exceptions, alike ones together, most frequent first.
SELECT coalesce(origin, 'user') AS origin, type, text, capped(sum(count)) AS count
FROM exceptions
WHERE cluster = $cluster
GROUP BY ALL
ORDER BY count DESC, type, text, origin
