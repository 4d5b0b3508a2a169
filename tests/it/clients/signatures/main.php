$given = json_decode(stream_get_contents(STDIN), true);
["body" => $body, "headers" => $headers, "secret" => $secret] = $given;
$hub = verify_hub_signature($body, $headers["x-hub-signature"] ?? "", $secret);
echo json_encode([$hub, verify_webhook($body, $headers, $secret)]), "\n";
